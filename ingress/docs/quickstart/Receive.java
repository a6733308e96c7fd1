// Receives webhooks and believes only those that are signed.
import com.sun.net.httpserver.*;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.security.*;
import java.time.Instant;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import static java.nio.charset.StandardCharsets.UTF_8;

class Receive {
    static final byte[] KEY = Base64.getDecoder()
        .decode(System.getenv("QUITTANCE_WEBHOOK_SECRET").replaceFirst("^whsec_", ""));

    public static void main(String[] args) throws Exception {
        var port = Integer.parseInt(System.getenv("PORT"));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> {
            var body = exchange.getRequestBody().readAllBytes();
            var ok = signed(exchange.getRequestHeaders(), body);
            // Here parse it and unlock the case, before the answer, and answer 500 if that fails:
            // the event comes again. Only for checkout.completed with the livemode that you
            // expect, and with the order, amount and currency of the case; once for each
            // order_id, since an event may come twice.
            if (ok) System.out.println(new String(body, UTF_8));
            exchange.sendResponseHeaders(ok ? 204 : 400, -1);
            exchange.close();
        });
        server.start();
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
