package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"
	yaml "go.yaml.in/yaml/v4"
)

// block is a fenced block of a guide.
var block = regexp.MustCompile("(?s)\n```([a-z]*)\n(.*?)\n```")

// invoked is the part of a shell line that is this command.
var invoked = regexp.MustCompile(`(?:^|[\s/])retrychaos ((?:run|report|list|explain) .*)$`)

// TestGuides: what the guides tell to type is understood, and their YAML is YAML.
func TestGuides(t *testing.T) {
	for _, guide := range []string{"ci.md", "reports.md"} {
		text, err := os.ReadFile("../../../docs/" + guide)
		if err != nil {
			t.Fatal(err)
		}
		commands := 0
		for _, b := range block.FindAllStringSubmatch(string(text), -1) {
			if b[1] == "yaml" {
				documents(t, guide, b[2])
			}
			if b[1] != "yaml" && b[1] != "sh" {
				continue
			}
			for _, line := range strings.Split(b[2], "\n") {
				m := invoked.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				line, _, _ := strings.Cut(m[1], " ||")
				line, _, _ = strings.Cut(line, " >")
				line = strings.NewReplacer("${{ matrix.shard }}", "1").Replace(line)
				args, err := shellquote.Split(line)
				if err != nil {
					t.Fatalf("%s: %q: %v", guide, line, err)
				}
				understood(t, guide, args)
				commands++
			}
		}
		if commands < 4 {
			t.Errorf("%s: only %d commands were found", guide, commands)
		}
	}
}

// understood reports an error if the command line would be refused for its words.
func understood(t *testing.T, guide string, args []string) {
	t.Helper()
	root := newRoot(builtIn())
	root.SetOut(io.Discard)
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil && cmd.Args != nil {
		err = cmd.Args(cmd, cmd.Flags().Args())
	}
	if err == nil && !cmd.Runnable() {
		err = errors.New("it does nothing")
	}
	if err != nil {
		t.Errorf("%s: retrychaos %s: %v", guide, strings.Join(args, " "), err)
	}
	if f := cmd.Flags().Lookup("shard"); f != nil && f.Changed {
		env := map[string]string{"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "4", "JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "8"}
		if _, err := parseShard(f.Value.String(), 0, func(k string) string { return env[k] }); err != nil {
			t.Errorf("%s: %v", guide, err)
		}
		if !cmd.Flags().Changed("seed") {
			t.Errorf("%s: %q has no seed", guide, strings.Join(args, " "))
		}
	}
}

// documents reads YAML, and holds an Indexed Job against what it tells its pods.
func documents(t *testing.T, guide, text string) {
	t.Helper()
	d, err := yaml.NewLoader(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	for {
		var doc any
		err := d.Load(&doc)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("%s: %v in\n%s", guide, err, text)
			return
		}
		m, ok := doc.(map[string]any)
		if !ok || m["kind"] != "Job" {
			continue
		}
		var job struct {
			Spec struct {
				CompletionMode           string `yaml:"completionMode"`
				Completions, Parallelism int
				Template                 struct {
					Spec struct {
						Containers []struct {
							Env []struct{ Name, Value string }
						}
					}
				}
			}
		}
		again, err := yaml.Marshal(doc)
		if err == nil {
			err = yaml.Unmarshal(again, &job)
		}
		if err != nil {
			t.Fatal(err)
		}
		if job.Spec.CompletionMode != "Indexed" {
			continue
		}
		told := ""
		for _, e := range job.Spec.Template.Spec.Containers[0].Env {
			if e.Name == "JOB_COMPLETIONS" {
				told = e.Value
			}
		}
		if n := job.Spec.Completions; n == 0 || told != strconv.Itoa(n) || job.Spec.Parallelism != n {
			t.Errorf("%s: %d completions, %d at once, and the pods are told of %q", guide, n, job.Spec.Parallelism, told)
		}
	}
}
