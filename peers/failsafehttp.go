package peers

import (
	"net/http"

	"github.com/failsafe-go/failsafe-go/failsafehttp"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// FailsafeHTTP is failsafe-go's RoundTripper with the retry policy that its builder makes: three attempts, no
// wait but a Retry-After.
func FailsafeHTTP() harness.Client {
	c := harness.RoundTripper("failsafehttp", func(base http.RoundTripper) http.RoundTripper {
		return failsafehttp.NewRoundTripper(base, failsafehttp.NewRetryPolicyBuilder().Build())
	})
	c.Version = version("github.com/failsafe-go/failsafe-go")
	c.Declared = history.Declared{MaxAttempts: 3, Jitter: history.JitterNone}
	return c
}
