import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PaymentsTest {
    private static final String BODY = "{\"amount\": 100, \"currency\": \"eur\"}";

    /** A scenario of one's own: a file of scenarios, in JSON. */
    private static final String BUSY = """
            "scenario": {"family": "payments", "scenarios": [{
              "name": "busy",
              "summary": "The server is busy and says for how long; a good client waits that long and tries again.",
              "rule": "timing.retry-after", "source": "RFC 9110 §10.2.3",
              "calls": [{"key": true}], "faults": ["503 retry-after=1s", "ok"],
              "expect": {"ok": true, "attempts": 2, "effects": 1}}]}""";

    /** Makes the run's one call, c1, and reports what the client said. */
    private static String make(String scenario, String key) throws Exception {
        try (Retrychaos run = new Retrychaos("{" + scenario + ", \"client\": {\"name\": \"payments\", \"max_attempts\": 3}}")) {
            long began = System.nanoTime();
            int attempts = new Payments(run.baseUrl).charge("c1", BODY, key);
            run.report(String.format("{\"call\": \"c1\", \"ok\": true, \"attempts\": %d, \"took_ms\": %d}",
                    attempts, (System.nanoTime() - began) / 1_000_000));
            return run.verdict();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "\"library\": \"duplicates/post-keyed-honour-connection-reset-fresh\"",
        "\"library\": \"duplicates/post-keyed-honour-502-fresh\"",
        "\"library\": \"bodies/keyed-post-empty-response-fresh\"",
        BUSY,
    })
    void aChargeIsMadeOnce(String scenario) throws Exception {
        String verdict = make(scenario, "\"order-17\"");
        assertEquals("pass", Retrychaos.member(verdict, "status"), Retrychaos.member(verdict, "text"));
    }

    @Test
    void aChargeWithoutItsKeyIsCaught() throws Exception {
        String verdict = make("\"library\": \"duplicates/post-keyed-honour-connection-reset-fresh\"", null);
        assertEquals("fail", Retrychaos.member(verdict, "status"));
        assertTrue(Retrychaos.member(verdict, "reason").contains("effects.once"), verdict);
    }
}
