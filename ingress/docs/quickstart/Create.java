// Creates a session, prints where the citizen pays, and waits for the end.
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.*;
import java.nio.file.*;
import java.time.Duration;
import java.util.UUID;
import java.util.regex.Pattern;
import static java.nio.charset.StandardCharsets.UTF_8;

class Create {
    static final String API = System.getenv("QUITTANCE_URL") + "/api/v1/checkout/sessions";
    static final HttpClient CLIENT = HttpClient.newHttpClient();

    public static void main(String[] args) throws Exception {
        // Keep order, due and key before you call, in your program in its database: a webhook is
        // compared with the due. After no answer or a 503 send the same again: it happens once.
        var order = "DOSSIER-" + UUID.randomUUID();
        Files.createDirectories(Path.of("cases"));
        Files.writeString(Path.of("cases", order + ".txt"), "5000 XAF\n");
        var body = """
            {"order_id": "%s", "amount": 5000, "currency": "XAF", "description": "Patente 2026"}""".formatted(order);
        var session = call(HttpRequest.newBuilder(URI.create(API))
            .header("Content-Type", "application/json").header("Idempotency-Key", UUID.randomUUID().toString())
            .POST(HttpRequest.BodyPublishers.ofString(body)));
        System.out.println("order_id: " + order + "\ncheckout_url: " + field(session, "checkout_url"));

        // A service waits for the webhook; asking by order_id is the fallback.
        while (field(session, "status").equals("open")) {
            Thread.sleep(2000);
            session = call(HttpRequest.newBuilder(URI.create(API + "?order_id=" + URLEncoder.encode(order, UTF_8))));
        }
        System.out.println("status: " + field(session, "status") + ", paid: " + field(session, "paid"));
    }

    static String call(HttpRequest.Builder request) throws Exception {
        request.header("Authorization", "Bearer " + System.getenv("QUITTANCE_KEY")).timeout(Duration.ofSeconds(20));
        var answer = CLIENT.send(request.build(), HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() >= 300) throw new Exception(answer.body()); // a problem's "type" leads to the mend
        return answer.body();
    }

    static String field(String json, String name) { // Java has no JSON of its own: use your library's
        var m = Pattern.compile("\"" + name + "\": *\"?([^\",}]*)").matcher(json);
        if (!m.find()) throw new IllegalStateException("no " + name + " in " + json);
        return m.group(1);
    }
}
