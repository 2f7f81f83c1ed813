/* SPDX-License-Identifier: MIT
 *
 * Driver.java - lets tests/bench/peers/run measure one Java peer: java Driver <peer> <port> <database> <user> <password>
 *
 * Reads commands from its input, answers each with one line:
 *   fill COUNT AHEAD_MS STEP_US   insert tasks 0 .. COUNT-1, the first due in AHEAD_MS, each STEP_US after the one before
 *   run IDLE_S [STOP_AT]          start the peer, wait until every task has run, or none for IDLE_S, stop it; JSON of
 *                                 what was seen. With STOP_AT it is stopped in between, when so many have run, and
 *                                 started again
 * Tasks are numbered; the handler notes when it first saw each number, and how often, nothing else.
 */
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.IntConsumer;
import java.util.stream.Collectors;

public final class Driver {
    /** What differs between peers. Its tables are made when it is created. */
    interface Peer {
        /** Tasks 0 .. count-1, due at first, first + step, ... */
        void fill(int count, Instant first, Duration step) throws Exception;

        /** Starts running tasks; closing what is returned stops that. */
        AutoCloseable start(IntConsumer handler) throws Exception;
    }

    /** When each task ran, in microseconds since 1970, and how often. */
    private static final class Seen {
        final long[] ranAt;
        final AtomicIntegerArray times;
        final CountDownLatch untilStop, missing;

        Seen(int count, int stopAt) {
            ranAt = new long[count];
            times = new AtomicIntegerArray(count);
            untilStop = new CountDownLatch(stopAt);
            missing = new CountDownLatch(count);
        }

        void ran(int task) {
            long now = micros(Instant.now());
            if (times.incrementAndGet(task) == 1) {
                ranAt[task] = now;
                untilStop.countDown();
                missing.countDown();
            }
        }

        int duplicates() {
            int more = 0;
            for (int i = 0; i < times.length(); i++)
                more += Math.max(0, times.get(i) - 1);
            return more;
        }
    }

    private static long micros(Instant at) {
        return ChronoUnit.MICROS.between(Instant.EPOCH, at);
    }

    static HikariDataSource pool(String[] args, int connections, String options) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:mariadb://127.0.0.1:" + args[1] + "/" + args[2]
            + "?sessionVariables=time_zone='+00:00'&" + options);
        config.setUsername(args[3]);
        config.setPassword(args[4]);
        config.setMaximumPoolSize(connections);
        return new HikariDataSource(config);
    }

    private static Peer make(String[] args) throws Exception {
        return switch (args[0]) {
            case "db-scheduler-fetch" -> new DbScheduler(args, false);
            case "db-scheduler-lock" -> new DbScheduler(args, true);
            case "transaction-outbox" -> new TransactionOutboxPeer(args);
            case "quartz" -> new Quartz(args);
            default -> throw new IllegalArgumentException("no such peer: " + args[0]);
        };
    }

    /** Runs the peer until the latch is down, or nothing has come for that long. */
    private static void runUntil(CountDownLatch latch, Peer peer, Seen seen, int idleSeconds) throws Exception {
        AutoCloseable running = peer.start(seen::ran);
        for (long before = -1; before != seen.missing.getCount();) {
            before = seen.missing.getCount();
            if (latch.await(idleSeconds, TimeUnit.SECONDS))
                break;
        }
        running.close();
    }

    private static String run(Peer peer, int count, long firstUs, int idleSeconds, int stopAt) throws Exception {
        Seen seen = new Seen(count, stopAt);
        if (stopAt > 0)
            runUntil(seen.untilStop, peer, seen, idleSeconds);
        runUntil(seen.missing, peer, seen, idleSeconds);
        String ran = Arrays.stream(seen.ranAt).mapToObj(Long::toString).collect(Collectors.joining(","));
        return "{\"first_due_us\":" + firstUs + ",\"duplicates\":" + seen.duplicates() + ",\"ran_us\":[" + ran + "]}";
    }

    public static void main(String[] args) throws Exception {
        Peer peer = make(args);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        int count = 0;
        Instant first = Instant.EPOCH;
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("fill")) {
                count = Integer.parseInt(words[1]);
                first = Instant.now().truncatedTo(ChronoUnit.SECONDS).plusMillis(Long.parseLong(words[2]));
                peer.fill(count, first, Duration.of(Long.parseLong(words[3]), ChronoUnit.MICROS));
                System.out.println("filled");
            } else {
                System.out.println(run(peer, count, micros(first), Integer.parseInt(words[1]),
                    words.length > 2 ? Integer.parseInt(words[2]) : 0));
            }
        }
        System.exit(0); // threads that a peer leaves behind
    }
}
