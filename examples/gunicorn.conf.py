# Each worker of gunicorn leases a node and ends with the lease: doc/applications.md
import os, subprocess, threading

def post_fork(server, worker):
    lease = subprocess.Popen(
        ["examples/with_lease", "8", f"app {worker.pid}", "sh", "-c", "echo $SCRU64_NODE_SPEC; exec cat"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    os.environ["SCRU64_NODE_SPEC"] = lease.stdout.readline().strip()
    threading.Thread(target=lambda: (lease.wait(), os._exit(1)), daemon=True).start()
