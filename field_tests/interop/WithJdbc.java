// JDBC

import java.nio.ByteBuffer;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Properties;

import org.postgresql.PGConnection;
import org.postgresql.PGStatement;
import org.postgresql.util.PGobject;

class WithJdbc {
    static final String ID = "0u2r85hm2pt3";
    static final long ID_INTEGER = 109964681944955175L;

    // IDs in the order of the server, which must be the order of strings
    static final List<String> ORDERED = List.of("000000000000", "0000000000zz", "00000000a000", ID,
            "9zzzzzzzzzzz", "a00000000000", "zzzzzzzzzzzz");

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

    // PGPASSFILE names the file with the password.
    static Connection connect(String name, String value) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        if (name != null)
            properties.setProperty(name, value);
        return DriverManager.getConnection("jdbc:postgresql://" + System.getenv("JDBC_ADDRESS") + "/"
                + System.getenv("PGDATABASE"), properties);
    }

    interface Binder {
        void bind(PreparedStatement statement) throws SQLException;
    }

    // The first values of all rows
    static List<String> strings(Connection conn, String sql, Binder binder) throws SQLException {
        List<String> strings = new ArrayList<>();
        try (PreparedStatement statement = conn.prepareStatement(sql)) {
            binder.bind(statement);
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next())
                    strings.add(rows.getString(1));
            }
        }
        return strings;
    }

    static List<String> strings(Connection conn, String sql) throws SQLException {
        return strings(conn, sql, statement -> { });
    }

    // The SQLSTATE of a failing query
    static String failure(Connection conn, String sql, Binder binder) {
        try {
            strings(conn, sql, binder);
            return "none";
        } catch (SQLException e) {
            return e.getSQLState();
        }
    }

    static String insert(Connection conn, String what) throws SQLException {
        String sql = "INSERT INTO event (what) VALUES (?)";
        try (PreparedStatement statement = conn.prepareStatement(sql, new String[] {"id"})) {
            statement.setString(1, what);
            statement.executeUpdate();
            ResultSet keys = statement.getGeneratedKeys();
            keys.next();
            return keys.getString(1);
        }
    }

    static ResultSet byId(Connection conn, String id) throws SQLException {
        PreparedStatement statement = conn.prepareStatement("SELECT id, what FROM event WHERE id = ?::scru64");
        statement.setString(1, id);
        return statement.executeQuery();
    }

    static ResultSet byIds(Connection conn, String... ids) throws SQLException {
        PreparedStatement statement = conn.prepareStatement("SELECT id, what FROM event WHERE id = ANY(?)");
        statement.setArray(1, conn.createArrayOf("scru64", ids));
        return statement.executeQuery();
    }

    static List<String> related(Connection conn, String id) throws SQLException {
        String sql = "SELECT related::text[] FROM event WHERE id = ?::scru64";
        try (PreparedStatement statement = conn.prepareStatement(sql)) {
            statement.setString(1, id);
            ResultSet rows = statement.executeQuery();
            rows.next();
            return Arrays.asList((String[]) rows.getArray(1).getArray());
        }
    }

    static long number(Connection conn, long id) throws SQLException {
        String sql = "SELECT id::bigint FROM event WHERE id = ?::scru64";
        try (PreparedStatement statement = conn.prepareStatement(sql)) {
            statement.setLong(1, id);
            ResultSet rows = statement.executeQuery();
            rows.next();
            return rows.getLong(1);
        }
    }

    static List<String> whats(ResultSet rows) throws SQLException {
        List<String> whats = new ArrayList<>();
        while (rows.next())
            whats.add(rows.getString("what"));
        Collections.sort(whats);
        return whats;
    }

    static void text(Connection conn) throws Exception {
        String first = insert(conn, "first");

        isEqual(List.of(first), psql("SELECT id FROM event WHERE what = 'first'"), "DEFAULT gives an ID");
        insert(conn, "second");
        insert(conn, "third");
        isEqual(strings(conn, "SELECT id FROM event WHERE what = 'first'"), List.of(first), "an ID is read back");
        isEqual(strings(conn, "INSERT INTO event (id, what) VALUES (?, 'given') RETURNING id",
                s -> s.setString(1, ID.toUpperCase())), List.of(ID), "setString in an INSERT");
        isEqual(psql("SELECT id FROM event WHERE what = 'given'"), List.of(ID), "it is stored");
        isEqual(strings(conn, "UPDATE event SET id = ? WHERE what = 'given' RETURNING id",
                s -> s.setLong(1, ID_INTEGER)), List.of(ID), "setLong in an UPDATE");

        isEqual(failure(conn, "SELECT what FROM event WHERE id = ?", s -> s.setString(1, first)), "42883",
                "setString in a comparison needs a cast");
        isEqual(whats(byId(conn, first)), List.of("first"), "and has one");
        isEqual(strings(conn, "SELECT what FROM event WHERE id = ?", s -> s.setObject(1, first, Types.OTHER)),
                List.of("first"), "setObject with Types.OTHER needs none");
        isEqual(failure(conn, "SELECT what FROM event WHERE id = ?", s -> s.setObject(1, first)), "42883",
                "setObject without it does");
        isEqual(strings(conn, "SELECT what FROM event WHERE id > ?::scru64 ORDER BY id", s -> s.setString(1, first)),
                List.of("second", "third"), "parameter in a range");

        isEqual(whats(byIds(conn, first, ID)), List.of("first", "given"), "= ANY(array of scru64)");
        isEqual(whats(byIds(conn)), List.of(), "= ANY(empty array)");
        isEqual(failure(conn, "SELECT what FROM event WHERE id = ANY(?)",
                s -> s.setArray(1, conn.createArrayOf("text", new String[] {first}))), "42883",
                "= ANY(array of text) needs a cast");
        isEqual(strings(conn, "SELECT what FROM event WHERE id = ANY(?::scru64[])",
                s -> s.setArray(1, conn.createArrayOf("text", new String[] {first}))), List.of("first"), "and has one");
        isEqual(strings(conn, "UPDATE event SET related = ? WHERE what = 'first' RETURNING 'updated'",
                s -> s.setArray(1, conn.createArrayOf("scru64", new String[] {first, null, ID}))),
                List.of("updated"), "an array in");
        isEqual(psql("SELECT related FROM event WHERE what = 'first'"), List.of("{" + first + ",NULL," + ID + "}"),
                "it is stored");
        try (ResultSet rows = conn.createStatement().executeQuery("SELECT related FROM event WHERE what = 'first'")) {
            rows.next();
            Object[] related = (Object[]) rows.getArray(1).getArray();
            isEqual(related[0].getClass(), PGobject.class, "an array out: of objects of the driver");
            isEqual(related[0].toString(), first, "an array out: their text is the ID");
            isEqual(related[1], null, "an array out: NULL is null");
        }
        isEqual(related(conn, first), Arrays.asList(first, null, ID), "an array out, cast: of strings");

        OffsetDateTime since = OffsetDateTime.now().minusHours(1);
        isEqual(strings(conn, "SELECT count(*) FROM event WHERE id >= ?", s -> s.setObject(1, since)), List.of("3"),
                "an OffsetDateTime in a comparison");
        Timestamp timestamp = Timestamp.from(since.toInstant());
        isEqual(failure(conn, "SELECT count(*) FROM event WHERE id >= ?", s -> s.setTimestamp(1, timestamp)), "22P02",
                "a Timestamp needs a cast");
        isEqual(strings(conn, "SELECT count(*) FROM event WHERE id >= ?::timestamptz",
                s -> s.setTimestamp(1, timestamp)), List.of("3"), "and has one");

        isEqual(strings(conn, "SELECT to_json(id) FROM event WHERE what = 'first'"), List.of("\"" + first + "\""),
                "to_json");
        isEqual(strings(conn, "SELECT json_agg(id ORDER BY id) FROM event"),
                psql("SELECT json_agg(id ORDER BY id) FROM event"), "json_agg");
    }

    static void unspecified(Connection conn) throws Exception {
        String first = psql("SELECT id FROM event WHERE what = 'first'").get(0);

        isEqual(strings(conn, "SELECT what FROM event WHERE id = ?", s -> s.setString(1, first)), List.of("first"),
                "stringtype=unspecified: setString in a comparison");
        isEqual(strings(conn, "SELECT what FROM event WHERE id = ?", s -> s.setObject(1, first)), List.of("first"),
                "stringtype=unspecified: setObject");
        isEqual(strings(conn, "UPDATE event SET id = ? WHERE what = 'given' RETURNING id", s -> s.setString(1, ID)),
                List.of(ID), "stringtype=unspecified: setString in an UPDATE");
        isEqual(failure(conn, "SELECT what FROM event WHERE id = ANY(?)",
                s -> s.setArray(1, conn.createArrayOf("text", new String[] {first}))), "42883",
                "stringtype=unspecified: an array of text needs a cast still");
    }

    // The driver asks for binary results once a statement was prepared on the
    // server, which prepareThreshold=-1 makes it do at once.
    static void binary(Connection conn) throws Exception {
        String first = psql("SELECT id FROM event WHERE what = 'first'").get(0);

        for (int i = 0; i < 2; i++)
            isEqual(strings(conn, "SELECT id FROM event WHERE id = ?::scru64", s -> s.setString(1, first)),
                    List.of(first), "binary transfer: an ID comes as text");
        try (PreparedStatement statement = conn.prepareStatement("SELECT id FROM event")) {
            statement.executeQuery();
            isEqual(statement.unwrap(PGStatement.class).isUseServerPrepare(), true, "binary transfer: prepared");
        }
        isEqual(number(conn, ID_INTEGER), ID_INTEGER, "binary transfer: as bigint, both ways");
        isEqual(related(conn, first), Arrays.asList(first, null, ID), "binary transfer: an array");
    }

    static void forced(Connection conn) throws Exception {
        try (Statement statement = conn.createStatement();
                ResultSet rows = statement.executeQuery("SELECT id FROM event WHERE what = 'given'")) {
            rows.next();
            isEqual(rows.getBytes(1).length, 8, "binaryTransferEnable: an ID comes as 8 bytes");
            isEqual(ByteBuffer.wrap(rows.getBytes(1)).getLong(), ID_INTEGER, "binaryTransferEnable: they are the ID");
            isEqual(rows.getString(1), null, "binaryTransferEnable: getString knows no text of it");
        }
    }

    static void order(Connection conn) throws Exception {
        for (int i = ORDERED.size() - 1; i >= 0; i--) {
            String id = ORDERED.get(i);
            strings(conn, "INSERT INTO event (id, what) VALUES (?, 'ordered') ON CONFLICT DO NOTHING RETURNING id",
                    s -> s.setString(1, id));
        }
        List<String> ids = strings(conn, "SELECT id FROM event ORDER BY id");
        isEqual(ids, psql("SELECT id FROM event ORDER BY id"), "the server's order");
        List<String> sorted = new ArrayList<>(ids);
        Collections.sort(sorted);
        isEqual(sorted, ids, "it is the order of the strings");
        ids.retainAll(ORDERED);
        isEqual(ids, ORDERED, "and the one expected");
    }

    public static void main(String[] args) throws Exception {
        try (Connection conn = connect(null, null)) {
            System.out.println("# " + conn.getMetaData().getDriverName() + " "
                    + conn.getMetaData().getDriverVersion() + ", Java " + System.getProperty("java.version"));
            text(conn);
        }
        try (Connection conn = connect("stringtype", "unspecified")) {
            unspecified(conn);
        }
        try (Connection conn = connect("prepareThreshold", "-1")) {
            binary(conn);
        }
        String oid = psql("SELECT oid FROM pg_type WHERE typname = 'scru64'").get(0);
        try (Connection conn = connect("binaryTransferEnable", oid)) {
            conn.unwrap(PGConnection.class).setPrepareThreshold(-1);
            forced(conn);
        }
        try (Connection conn = connect(null, null)) {
            order(conn);
        }
        System.out.println("done");
    }
}
