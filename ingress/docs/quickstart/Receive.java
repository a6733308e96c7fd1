// Receives webhooks. It answers 2xx only after the case is stored: what is answered 2xx never comes again.
import com.sun.net.httpserver.*;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URLEncoder;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.*;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import static java.nio.charset.StandardCharsets.UTF_8;

class Receive {
    static final boolean LIVE = System.getenv("QUITTANCE_KEY").startsWith("sk_live_");
    static final byte[] KEY = Base64.getDecoder()
        .decode(System.getenv("QUITTANCE_WEBHOOK_SECRET").replaceFirst("^whsec_", ""));

    public static void main(String[] args) throws Exception {
        var port = Integer.parseInt(System.getenv("PORT"));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> {
            int status;
            try {
                var body = exchange.getRequestBody().readNBytes(1 << 20);
                status = signed(exchange.getRequestHeaders(), body) ? 204 : 400;
                if (status == 204) store(fields(new String(body, UTF_8)));
            } catch (IOException | RuntimeException e) {
                e.printStackTrace();
                status = 500; // the event comes again
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
    }

    // Keeps what an event says about a case: in your program one transaction of its database. Here a
    // case is a file. Create.java wrote its first line, the due, before it created the session; each
    // other line is the last word about the money of a session. A case is unlocked while one of them
    // ends in paid.
    static synchronized void store(Map<String, String> event) throws IOException {
        if (Boolean.parseBoolean(event.get("livemode")) != LIVE) return; // test money unlocks nothing
        var name = event.get("event");
        var reversed = name.equals("checkout.reversed") && event.get("was_completed").equals("true"); // given back
        if (!name.equals("checkout.completed") && !reversed) return;
        var file = Path.of("cases", URLEncoder.encode(event.get("order_id"), UTF_8) + ".txt");
        List<String> lines;
        try {
            lines = Files.readAllLines(file);
        } catch (NoSuchFileException e) {
            Path.of("cases").toRealPath(); // fails if there is no store
            return; // the order of another system that shares the endpoint
        }
        var kept = new ArrayList<>(lines.subList(0, 1));
        for (var line : lines.subList(1, lines.size())) {
            var words = line.split(" ");
            if (!words[0].equals(event.get("session_id"))) kept.add(line);
            else if (Long.parseLong(words[1]) >= Long.parseLong(event.get("sequence"))) return; // stored before, or a later one
        }
        var state = reversed ? "reversed" : "paid";
        if (state.equals("paid") && !lines.get(0).equals(event.get("amount") + " " + event.get("currency")))
            state = "differs"; // a person must look at it
        kept.add(event.get("session_id") + " " + event.get("sequence") + " " + state);
        var next = Path.of(file + ".new"); // on the disk as a whole, then in its place
        Files.write(next, kept);
        try (var channel = FileChannel.open(next, StandardOpenOption.WRITE)) {
            channel.force(true);
        }
        Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
        System.out.println(event.get("order_id") + " " + state);
    }

    // The fields of the object, without those of objects in it. Java has no JSON of its own: use your library's.
    static Map<String, String> fields(String json) {
        var out = new HashMap<String, String>();
        var tokens = Pattern.compile("\"([^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+)\"(\\s*:)?|[\\[\\]{}]|[^\\s,:\\[\\]{}\"]+").matcher(json);
        var name = "";
        for (var depth = 0; tokens.find(); ) {
            var token = tokens.group();
            if (token.equals("{") || token.equals("[")) depth++;
            else if (token.equals("}") || token.equals("]")) depth--;
            else if (depth == 1 && tokens.group(2) != null) name = tokens.group(1);
            else if (depth == 1) out.put(name, tokens.group(1) != null ? tokens.group(1) : token);
        }
        if (!out.keySet().containsAll(List.of("event", "livemode"))) throw new IllegalArgumentException("no event");
        return out;
    }

    static boolean signed(Headers headers, byte[] body) {
        try {
            String id = headers.getFirst("webhook-id"), timestamp = headers.getFirst("webhook-timestamp");
            if (Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > 300) return false;
            var mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(KEY, "HmacSHA256"));
            mac.update((id + "." + timestamp + ".").getBytes(UTF_8));
            var want = ("v1," + Base64.getEncoder().encodeToString(mac.doFinal(body))).getBytes(UTF_8);
            for (var got : headers.getFirst("webhook-signature").split(" ")) {
                if (MessageDigest.isEqual(want, got.getBytes(UTF_8))) return true;
            }
        } catch (GeneralSecurityException | RuntimeException e) {
            return false; // a header is missing or malformed
        }
        return false;
    }
}
