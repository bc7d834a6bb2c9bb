import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/** The client under test: it charges a card, and repeats what failed. */
final class Payments {
    private static final int ATTEMPTS = 3;
    private static final Set<Integer> PASSING = Set.of(429, 502, 503, 504);

    private final HttpClient http = HttpClient.newHttpClient();
    private final String baseUrl;

    Payments(String baseUrl) {
        this.baseUrl = baseUrl;
    }

    /** Charges once, whatever it takes. Without a key it is repeated all the same, which is wrong. */
    int charge(String id, String body, String key) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(baseUrl + "/charges/" + id))
                .header("Content-Type", "application/json").timeout(Duration.ofSeconds(5)).POST(BodyPublishers.ofString(body));
        if (key != null) {
            request.header("Idempotency-Key", key);
        }
        for (int attempt = 1;; attempt++) {
            long wait = ThreadLocalRandom.current().nextLong(10, 200L << attempt);
            IOException failure;
            try {
                HttpResponse<String> response = http.send(request.build(), BodyHandlers.ofString());
                if (response.statusCode() < 300) {
                    return attempt;
                }
                failure = new IOException("status " + response.statusCode());
                if (!PASSING.contains(response.statusCode())) {
                    throw failure;
                }
                wait += 1000 * response.headers().firstValueAsLong("Retry-After").orElse(0);
            } catch (IOException e) {
                failure = e;
            }
            if (attempt == ATTEMPTS) {
                throw failure;
            }
            Thread.sleep(wait);
        }
    }
}
