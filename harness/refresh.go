package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/retrychaos/retrychaos/harness/server"
)

// refresher returns the function that asks the server for a new token, over the client instance's own
// transport. Its error tells the status where the server refuses.
func refresher(t http.RoundTripper, baseURL string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, baseURL+server.TokenPath, nil)
		if err != nil {
			return "", err
		}
		resp, err := (&http.Client{Transport: t}).Do(req)
		if err != nil {
			return "", fmt.Errorf("refreshing the token: %w", err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return "", fmt.Errorf("refreshing the token: %s", resp.Status)
		}
		var got struct{ Token string }
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			return "", fmt.Errorf("refreshing the token: %w", err)
		}
		return got.Token, nil
	}
}
