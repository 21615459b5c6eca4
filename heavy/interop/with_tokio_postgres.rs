//! tokio-postgres. postgres, without the tokio, is the same beneath.

use std::fmt::Debug;
use std::process::Command;
use std::time::{Duration, SystemTime};

// The type for doc/clients.md: from here
use bytes::{BufMut, BytesMut};
use scru64::Scru64Id;
use std::error::Error;
use tokio_postgres::types::{to_sql_checked, FromSql, IsNull, ToSql, Type};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Id(Scru64Id);

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_u64(self.0.to_u64());
        Ok(IsNull::No)
    }
    fn accepts(ty: &Type) -> bool {
        ty.name() == "scru64"
    }
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Id(u64::from_be_bytes(raw.try_into()?).try_into()?))
    }
    fn accepts(ty: &Type) -> bool {
        ty.name() == "scru64"
    }
}
// to here

/// Stands in for the crate scru64: the parts of its type used here.
mod scru64 {
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Scru64Id(u64);

    impl Scru64Id {
        pub fn to_u64(self) -> u64 {
            self.0
        }
    }

    impl TryFrom<u64> for Scru64Id {
        type Error = String;

        fn try_from(value: u64) -> Result<Self, String> {
            if value < 36u64.pow(12) {
                Ok(Self(value))
            } else {
                Err("out of range".into())
            }
        }
    }
}

const TEXT: &str = "0u2r85hm2pt3";
const NUMBER: u64 = 109964681944955175;

struct Tests {
    client: tokio_postgres::Client,
}

impl Tests {
    fn is_equal<T: PartialEq + Debug>(&self, got: T, expected: T, name: &str) {
        if got == expected {
            println!("ok - {}", name);
        } else {
            println!("not ok - {}\n#        got: {:?}\n#   expected: {:?}", name, got, expected);
        }
    }

    /// The first value of the first row; the SQLSTATE, or the driver's message, if it fails
    async fn value<T>(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<T, String>
    where
        T: for<'a> FromSql<'a>,
    {
        let described = |error: tokio_postgres::Error| match error.code() {
            Some(code) => code.code().to_string(),
            None => error.to_string().split(':').next().unwrap().to_string(),
        };
        self.client.query_one(sql, params).await.map_err(described)?.try_get(0).map_err(described)
    }
}

/// psql's output, without the last line feed
fn psql(sql: &str) -> String {
    let psql = std::env::var("PSQL").unwrap();
    let output = Command::new(psql).args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql]).output().unwrap();
    assert!(output.status.success(), "psql: {}", sql);
    String::from_utf8(output.stdout).unwrap().trim_end().to_string()
}

async fn run() -> Result<(), Box<dyn Error>> {
    let env = |name| std::env::var(name).unwrap();
    let config =
        format!("host={} port={} user={} dbname={}", env("PGHOST"), env("PGPORT"), env("PGUSER"), env("PGDATABASE"));
    let (client, connection) = tokio_postgres::connect(&config, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let t = Tests { client };
    let id = Id(NUMBER.try_into()?);

    // The recipe's type
    let first: Id = t.value("INSERT INTO event (what) VALUES ($1) RETURNING id", &[&"first"]).await?;
    t.is_equal(first.0.to_u64().to_string(), psql("SELECT id::bigint FROM event"), "DEFAULT gives an ID");
    let got = t.value("SELECT what FROM event WHERE id = $1", &[&first]).await;
    t.is_equal(got, Ok("first".to_string()), "parameter in a comparison");
    let got = t.value("INSERT INTO event (id, what) VALUES ($1, 'given') RETURNING id", &[&id]).await;
    t.is_equal(got, Ok(id), "parameter in an INSERT");
    t.is_equal(psql("SELECT id FROM event WHERE what = 'given'"), TEXT.to_string(), "it is stored");
    let got = t.value("SELECT $1::scru64", &[&None::<Id>]).await;
    t.is_equal(got, Ok(None::<Id>), "NULL");
    let ids = vec![id, first];
    let got = t.value("SELECT array_agg(id ORDER BY id) FROM event WHERE id = ANY($1)", &[&ids]).await;
    t.is_equal(got, Ok(ids.clone()), "arrays");
    t.client.execute("UPDATE event SET related = $1", &[&ids]).await?;
    let stored = format!("{{{},{}}}", NUMBER, first.0.to_u64());
    t.is_equal(psql("SELECT DISTINCT related::bigint[]::text FROM event"), stored, "an array is stored");

    // Strings
    let wrong = Err("error serializing parameter 0".to_string());
    let got = t.value::<String>("SELECT what FROM event WHERE id = $1", &[&TEXT]).await;
    t.is_equal(got, wrong.clone(), "a string needs a cast");
    let sql = "SELECT id::text, what FROM event WHERE id = $1::text::scru64";
    let row = t.client.query_one(sql, &[&TEXT]).await?;
    t.is_equal(row.get(0), TEXT, "and has one");
    let got = t.value::<String>("SELECT id FROM event WHERE id = $1", &[&id]).await;
    t.is_equal(got, Err("error deserializing column 0".to_string()), "it needs one to come out");
    let got = t.value::<String>("SELECT $1::text::scru64::text", &[&"no ID"]).await;
    t.is_equal(got, Err("22P02".to_string()), "the error of bad text");
    let strings = vec![TEXT.to_string()];
    let got = t.value("SELECT $1::text[]::scru64[]::text[]", &[&strings]).await;
    t.is_equal(got, Ok(strings.clone()), "arrays of strings");

    // Numbers and times
    let got = t.value::<String>("SELECT what FROM event WHERE id = $1", &[&(NUMBER as i64)]).await;
    t.is_equal(got, wrong.clone(), "a number needs a cast");
    let got = t.value("SELECT what FROM event WHERE id = $1::bigint::scru64", &[&(NUMBER as i64)]).await;
    t.is_equal(got, Ok("given".to_string()), "and has one");
    let since = SystemTime::now() - Duration::from_secs(3600);
    let got = t.value::<String>("SELECT what FROM event WHERE id >= $1", &[&since]).await;
    t.is_equal(got, wrong, "a time needs a cast");
    let got = t.value("SELECT what FROM event WHERE id >= $1::timestamptz", &[&since]).await;
    t.is_equal(got, Ok("first".to_string()), "and has one");

    println!("done");
    Ok(())
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run()).unwrap();
}
