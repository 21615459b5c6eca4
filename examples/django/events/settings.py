import os

# PGHOST, PGPORT, PGUSER and so on name the server.
DATABASES = {"default": {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": os.environ.get("PGDATABASE", "events"),
}}
INSTALLED_APPS = ["django.contrib.postgres", "events"]
MIDDLEWARE = ["django.middleware.csrf.CsrfViewMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
ROOT_URLCONF = "events.urls"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
SECRET_KEY = os.environ["SECRET_KEY"]
USE_TZ = True
TIME_ZONE = "UTC"
