import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One scenario's server. Start the fault server with `retrychaos serve`, and name it in RETRYCHAOS_URL. A project that
 * has a JSON library reads the answers with that; here three members of the top are all that is needed.
 */
final class Retrychaos implements AutoCloseable {
    private static final String URL = Optional.ofNullable(System.getenv("RETRYCHAOS_URL")).orElse("http://127.0.0.1:8474");
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    final String baseUrl;
    private final String path;

    /** The order is a JSON object, like {"library": "recovery/one-hang"}. */
    Retrychaos(String order) throws IOException, InterruptedException {
        String run = ask("POST", "/runs", order);
        path = "/runs/" + member(run, "id");
        baseUrl = member(run, "base_url");
    }

    /** Reports what the client said of a call: a JSON object. */
    void report(String outcome) throws IOException, InterruptedException {
        ask("POST", path + "/outcomes", outcome);
    }

    /** The whole verdict; member takes it apart. */
    String verdict() throws IOException, InterruptedException {
        return ask("GET", path + "/verdict", "");
    }

    @Override
    public void close() throws IOException, InterruptedException {
        ask("DELETE", path, "");
    }

    /** A text at the top of an indented JSON object, with lines and quotes as they were. */
    static String member(String json, String name) {
        Matcher m = Pattern.compile("(?m)^  \"" + name + "\": \"((?:[^\"\\\\]|\\\\.)*)\"").matcher(json);
        if (!m.find()) {
            throw new IllegalArgumentException("no " + name + " in " + json);
        }
        return m.group(1).replace("\\n", "\n").replace("\\\"", "\"");
    }

    private static String ask(String method, String path, String body) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(URL + path))
                .header("Content-Type", "application/json").method(method, BodyPublishers.ofString(body)).build();
        var response = HTTP.send(request, BodyHandlers.ofString());
        if (response.statusCode() >= 300) {
            throw new IOException(method + " " + path + ": " + response.statusCode() + " " + response.body());
        }
        return response.body();
    }
}
