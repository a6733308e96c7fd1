// A program with the client that OpenAPI Generator makes for Java; see clients_test.go.
import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.SessionsApi;
import org.openapitools.client.auth.HttpBearerAuth;
import org.openapitools.client.model.*;

public class Client {
    public static void main(String[] args) throws Exception {
        ApiClient client = new ApiClient();
        client.setBasePath(System.getenv("QUITTANCE_URL"));
        ((HttpBearerAuth) client.getAuthentication("apiKey")).setBearerToken(System.getenv("QUITTANCE_KEY"));
        SessionsApi sessions = new SessionsApi(client);

        SessionCreate body = new SessionCreate().orderId(System.getenv("QUITTANCE_ORDER")).amount(5_000_000_000L);
        Session created = sessions.createSession(UUID.randomUUID().toString(), body);
        Session read = sessions.getSession(created.getId(), null);
        System.out.printf("%s %s %d %s%n", read.getId(), read.getStatus().getValue(), read.getAmount(), read.getMode().getValue());
        try {
            sessions.createSession(UUID.randomUUID().toString(), body);
        } catch (ApiException e) {
            Problem problem = Problem.fromJson(e.getResponseBody());
            System.out.printf("%d %s%n", e.getCode(), problem.getCode().getValue());
        }

        for (String line : System.getenv("QUITTANCE_EVENTS").split("\n")) {
            Object event = Event.fromJson(line).getActualInstance();
            if (event instanceof CompletedEvent e) {
                print(e.getEvent().getValue(), e.getSessionId(), e.getAmount(), e.getTotalAmount());
            } else if (event instanceof FailedEvent e) {
                print(e.getEvent().getValue(), e.getSessionId(), e.getAmount(), e.getFailureCode().getValue());
            } else if (event instanceof CancelledEvent e) {
                print(e.getEvent().getValue(), e.getSessionId(), e.getAmount(), e.getStatus().getValue());
            } else if (event instanceof ExpiredEvent e) {
                print(e.getEvent().getValue(), e.getSessionId(), e.getAmount(), e.getStatus().getValue());
            } else if (event instanceof LatePaymentEvent e) {
                print(e.getEvent().getValue(), e.getSessionId(), e.getAmount(), e.getTotalAmount());
            } else if (event instanceof ReversedEvent e) {
                print(e.getEvent().getValue(), e.getSessionId(), e.getAmount(), e.getItems().get(0).getAmount());
            }
        }
        client.getHttpClient().dispatcher().executorService().shutdown();
        client.getHttpClient().connectionPool().evictAll();
    }

    static void print(String event, String session, Long amount, Object detail) {
        System.out.printf("%s %s %d %s%n", event, session, amount, detail);
    }
}
