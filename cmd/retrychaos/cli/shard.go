package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/retrychaos/retrychaos/internal/nearest"
	"github.com/retrychaos/retrychaos/reports"
)

// A part is one of so many, from 1.
type part struct{ index, total int }

// A sharder is a system that runs one command several times, and says by variables which of them this is.
type sharder struct {
	name         string
	index, total string // names of variables
	from         int    // of the first index
}

var sharders = []sharder{
	{"bazel", "TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", 0},
	{"kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", 0},
	{"gitlab", "CI_NODE_INDEX", "CI_NODE_TOTAL", 1},
	{"circleci", "CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0},
}

// parseShard reads --shard: I/N, the name of a system, or auto. total is --shards, 0 where it is not given.
func parseShard(text string, total int, env func(string) string) (part, error) {
	words := []string{"auto"}
	for _, s := range sharders {
		words = append(words, s.name)
	}
	if i, n, ok := strings.Cut(text, "/"); ok {
		index, err1 := strconv.Atoi(i)
		of, err2 := strconv.Atoi(n)
		switch {
		case err1 != nil || err2 != nil:
			return part{}, fmt.Errorf("--shard %q: want I/N in whole numbers, as in 2/3", text)
		case total != 0 && total != of:
			return part{}, fmt.Errorf("--shard %s and --shards %d say different things: leave out --shards", text, total)
		}
		return part{index, of}.valid("--shard " + text)
	}
	if text == "auto" {
		var found []sharder
		for _, s := range sharders {
			if env(s.index) != "" {
				found = append(found, s)
			}
		}
		switch {
		case len(found) == 1:
			return found[0].part(total, env)
		case len(found) > 1:
			return part{}, fmt.Errorf("--shard auto: both %s and %s are set: say which counts with --shard %s or --shard %s",
				found[0].index, found[1].index, found[0].name, found[1].name)
		}
		var names []string
		for _, s := range sharders {
			names = append(names, s.index)
		}
		return part{}, fmt.Errorf("--shard auto: none of %s is set: say --shard I/N", strings.Join(names, ", "))
	}
	for _, s := range sharders {
		if s.name == text {
			return s.part(total, env)
		}
	}
	return part{}, fmt.Errorf("--shard %q: want I/N as in 2/3, or one of %s%s", text, strings.Join(words, ", "), nearest.Hint(text, words))
}

// part reads the system's variables.
func (s sharder) part(total int, env func(string) string) (part, error) {
	number := func(name string) (int, error) {
		n, err := strconv.Atoi(env(name))
		if err != nil {
			return 0, fmt.Errorf("--shard %s: %s is %q, and that is no whole number", s.name, name, env(name))
		}
		return n, nil
	}
	if env(s.index) == "" {
		return part{}, fmt.Errorf("--shard %s: %s is not set", s.name, s.index)
	}
	index, err := number(s.index)
	if err != nil {
		return part{}, err
	}
	if total == 0 {
		if env(s.total) == "" {
			return part{}, fmt.Errorf("--shard %s: %s is not set: set it, or say --shards N", s.name, s.total)
		}
		if total, err = number(s.total); err != nil {
			return part{}, err
		}
	}
	return part{index - s.from + 1, total}.valid(fmt.Sprintf("--shard %s: %s is %d, of %d", s.name, s.index, index, total))
}

func (p part) valid(said string) (part, error) {
	switch {
	case p.total < 1:
		return part{}, fmt.Errorf("%s: there must be at least one shard", said)
	case p.index < 1 || p.index > p.total:
		return part{}, fmt.Errorf("%s: there is no such shard", said)
	}
	return p, nil
}

// resolveShard reads the flags, and tells Bazel that its shards are obeyed.
func (f *runFlags) resolveShard(seeded bool) error {
	if f.shardText == "" {
		if f.shards != 0 {
			return errors.New("--shards is how many there are: say which one this is with --shard")
		}
		return nil
	}
	p, err := parseShard(f.shardText, f.shards, os.Getenv)
	if err != nil {
		return err
	}
	if !seeded {
		return fmt.Errorf("--shard %s needs --seed: each shard would draw a seed of its own, and together they would not be one run", f.shardText)
	}
	f.part = &p
	return nil
}

// touchBazel tells Bazel, by the time of a file that it names, that this program shards.
func (f *runFlags) touchBazel() error {
	file := os.Getenv("TEST_SHARD_STATUS_FILE")
	if file == "" || f.part == nil || f.shardText != "bazel" && f.shardText != "auto" || os.Getenv("TEST_SHARD_INDEX") == "" {
		return nil
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return fmt.Errorf("TEST_SHARD_STATUS_FILE: %w", err)
	}
	return nil
}

// tasks lists what is to be run: all, or the shard's part of them. A shard has every so-manieth of the list that is
// sorted by client and scenario, so that the long scenarios of a family are spread.
func (f *runFlags) tasks() []task {
	var all []task
	for _, c := range f.tested {
		for _, s := range f.scenarios {
			all = append(all, task{c.Client, s, f.worldOf(c.Client)})
		}
	}
	if f.part == nil {
		return all
	}
	slices.SortStableFunc(all, func(a, b task) int {
		if d := strings.Compare(a.client.Name, b.client.Name); d != 0 {
			return d
		}
		return strings.Compare(a.scenario.Name, b.scenario.Name)
	})
	var mine []task
	for i, t := range all {
		if i%f.part.total == f.part.index-1 {
			mine = append(mine, t)
		}
	}
	return mine
}

// shard is what the report says of the part; nil for a whole run.
func (f *runFlags) shard(run reports.Run, results int) (*reports.Shard, error) {
	if f.part == nil {
		return nil, nil
	}
	plan, err := reports.Plan(run, f.scenarios)
	if err != nil {
		return nil, err
	}
	return &reports.Shard{Index: f.part.index, Total: f.part.total, Plan: plan, Results: results, All: len(f.tested) * len(f.scenarios)}, nil
}
