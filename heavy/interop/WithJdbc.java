// JDBC

import java.nio.ByteBuffer;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Properties;

import org.postgresql.PGConnection;
import org.postgresql.PGStatement;
import org.postgresql.util.PGobject;

class WithJdbc {
    static final String ID = "0u2r85hm2pt3";
    static final long ID_INTEGER = 109964681944955175L;

    static final String BY_ID = "SELECT what FROM event WHERE id = ?";
    static final String BY_IDS = "SELECT what FROM event WHERE id = ANY(?) ORDER BY what";

    static String first;                        // the first row's ID

    static void isEqual(Object got, Object expected, String name) {
        if (Objects.equals(got, expected)) {
            System.out.println("ok - " + name);
        } else {
            System.out.println("not ok - " + name);
            System.out.println("#        got: " + got);
            System.out.println("#   expected: " + expected);
        }
    }

    // psql's output, a string for each line
    static List<String> psql(String sql) throws Exception {
        Process process = new ProcessBuilder(System.getenv("PSQL"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        List<String> lines = new String(process.getInputStream().readAllBytes()).lines().toList();
        if (process.waitFor() != 0)
            throw new Exception("psql failed");
        return lines;
    }

    static Connection conn;

    interface Test {
        void run() throws Exception;
    }

    // Run a test with a connection that has a property, unless that is null.
    static void with(String property, String value, Test test) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        if (property != null)
            properties.setProperty(property, value);
        String url = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        try (Connection connection = DriverManager.getConnection(url, properties)) {
            conn = connection;
            test.run();
        }
    }

    interface Binder {
        void bind(PreparedStatement statement) throws SQLException;
    }

    static Binder string(String value) {
        return statement -> statement.setString(1, value);
    }

    static Binder array(String type, String... values) {
        return statement -> statement.setArray(1, conn.createArrayOf(type, values));
    }

    interface Reader<T> {
        T read(ResultSet rows) throws SQLException;
    }

    // What is read of each row
    static <T> List<T> values(String sql, Binder binder, Reader<T> reader) throws SQLException {
        List<T> values = new ArrayList<>();
        try (PreparedStatement statement = conn.prepareStatement(sql)) {
            binder.bind(statement);
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next())
                    values.add(reader.read(rows));
            }
        }
        return values;
    }

    // The first values of all rows
    static List<String> strings(String sql, Binder binder) throws SQLException {
        return values(sql, binder, rows -> rows.getString(1));
    }

    // The SQLSTATE of a failing query
    static String failure(String sql, Binder binder) {
        try {
            strings(sql, binder);
            return "none";
        } catch (SQLException e) {
            return e.getSQLState();
        }
    }

    static String insert(String what) throws SQLException {
        String sql = "INSERT INTO event (what) VALUES (?)";
        try (PreparedStatement statement = conn.prepareStatement(sql, new String[] {"id"})) {
            statement.setString(1, what);
            statement.executeUpdate();
            ResultSet keys = statement.getGeneratedKeys();
            keys.next();
            return keys.getString(1);
        }
    }

    // An array, cast to one of strings
    static List<String> related(String id) throws SQLException {
        return values("SELECT related::text[] FROM event WHERE id = ?::scru64", string(id),
                rows -> Arrays.asList((String[]) rows.getArray(1).getArray())).get(0);
    }

    static void text() throws Exception {
        System.out.println("# " + conn.getMetaData().getDriverName() + " " + conn.getMetaData().getDriverVersion()
                + ", Java " + System.getProperty("java.version"));
        first = insert("first");
        isEqual(List.of(first), psql("SELECT id FROM event WHERE what = 'first'"), "DEFAULT gives an ID");
        isEqual(strings("INSERT INTO event (id, what) VALUES (?, 'given') RETURNING id", string(ID.toUpperCase())),
                List.of(ID), "setString in an INSERT");
        isEqual(psql("SELECT id FROM event WHERE what = 'given'"), List.of(ID), "it is stored");
        String update = "UPDATE event SET id = ? WHERE what = 'given' RETURNING id";
        isEqual(failure(update, s -> s.setLong(1, ID_INTEGER)), "42804", "setLong in an UPDATE needs a cast");
        isEqual(strings(update.replace("?", "?::scru64"), s -> s.setLong(1, ID_INTEGER)), List.of(ID), "and has one");

        isEqual(failure(BY_ID, string(first)), "42883", "setString in a comparison needs a cast");
        isEqual(strings(BY_ID + "::scru64", string(first)), List.of("first"), "and has one");
        isEqual(strings(BY_ID, s -> s.setObject(1, first, Types.OTHER)), List.of("first"),
                "setObject with Types.OTHER needs none");
        isEqual(failure(BY_ID, s -> s.setObject(1, first)), "42883", "setObject without it does");

        isEqual(strings(BY_IDS, array("scru64", first, ID)), List.of("first", "given"), "= ANY(array of scru64)");
        isEqual(strings(BY_IDS, array("scru64")), List.of(), "= ANY(empty array)");
        isEqual(failure(BY_IDS, array("text", first)), "42883", "= ANY(array of text) needs a cast");
        isEqual(strings(BY_IDS.replace("?", "?::scru64[]"), array("text", first)), List.of("first"), "and has one");
        isEqual(strings("UPDATE event SET related = ? WHERE what = 'first' RETURNING 'updated'",
                array("scru64", first, null, ID)), List.of("updated"), "an array in");
        isEqual(psql("SELECT related FROM event WHERE what = 'first'"), List.of("{" + first + ",NULL," + ID + "}"),
                "it is stored");
        Object[] related = values("SELECT related FROM event WHERE id = ?::scru64", string(first),
                rows -> (Object[]) rows.getArray(1).getArray()).get(0);
        isEqual(related[0].getClass(), PGobject.class, "an array out: of objects of the driver");
        isEqual(related[0].toString(), first, "an array out: their text is the ID");
        isEqual(related[1], null, "an array out: NULL is null");
        isEqual(related(first), Arrays.asList(first, null, ID), "an array out, cast: of strings");

        String since = "SELECT count(*) FROM event WHERE id >= ?";
        OffsetDateTime time = OffsetDateTime.now().minusHours(1);
        Binder timestamp = s -> s.setTimestamp(1, Timestamp.from(time.toInstant()));
        isEqual(strings(since, s -> s.setObject(1, time)), List.of("1"), "an OffsetDateTime in a comparison");
        isEqual(failure(since, timestamp), "22P02", "a Timestamp needs a cast");
        isEqual(strings(since + "::timestamptz", timestamp), List.of("1"), "and has one");
    }

    static void unspecified() throws Exception {
        isEqual(strings(BY_ID, string(first)), List.of("first"), "stringtype=unspecified: setString in a comparison");
        isEqual(strings(BY_ID, s -> s.setObject(1, first)), List.of("first"), "stringtype=unspecified: setObject");
        isEqual(strings("UPDATE event SET id = ? WHERE what = 'given' RETURNING id", string(ID)), List.of(ID),
                "stringtype=unspecified: setString in an UPDATE");
        isEqual(failure(BY_IDS, array("text", first)), "42883",
                "stringtype=unspecified: an array of text needs a cast still");
    }

    // The driver asks for binary results once a statement was prepared on the
    // server, which prepareThreshold=-1 makes it do at once.
    static void binary() throws Exception {
        for (int i = 0; i < 2; i++)
            isEqual(strings("SELECT id FROM event WHERE id = ?::scru64", string(first)), List.of(first),
                    "binary transfer: an ID comes as text");
        try (PreparedStatement statement = conn.prepareStatement("SELECT id FROM event")) {
            statement.executeQuery();
            isEqual(statement.unwrap(PGStatement.class).isUseServerPrepare(), true, "binary transfer: prepared");
        }
        isEqual(values("SELECT id::bigint FROM event WHERE id = ?::scru64", s -> s.setLong(1, ID_INTEGER),
                rows -> rows.getLong(1)), List.of(ID_INTEGER), "binary transfer: as bigint, both ways");
        isEqual(related(first), Arrays.asList(first, null, ID), "binary transfer: an array");
    }

    static void forced() throws Exception {
        String sql = "SELECT id FROM event WHERE what = ?";
        conn.unwrap(PGConnection.class).setPrepareThreshold(-1);
        byte[] bytes = values(sql, string("given"), rows -> rows.getBytes(1)).get(0);
        isEqual(bytes.length, 8, "binaryTransferEnable: an ID comes as 8 bytes");
        isEqual(ByteBuffer.wrap(bytes).getLong(), ID_INTEGER, "binaryTransferEnable: they are the ID");
        isEqual(strings(sql, string("given")), Arrays.asList((String) null),
                "binaryTransferEnable: getString knows no text of it");
    }

    public static void main(String[] args) throws Exception {
        with(null, null, WithJdbc::text);
        with("stringtype", "unspecified", WithJdbc::unspecified);
        with("prepareThreshold", "-1", WithJdbc::binary);
        with("binaryTransferEnable", psql("SELECT oid FROM pg_type WHERE typname = 'scru64'").get(0), WithJdbc::forced);
        System.out.println("done");
    }
}
