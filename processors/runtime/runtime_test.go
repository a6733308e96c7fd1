package runtime

import (
	"fmt"
	"testing"
)

func TestCountsEveryCommandOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.start("a", withStore(t.TempDir())).ready()
	for i := range 400 {
		w.send(int32(i%4), fmt.Sprintf("k%d", i%7), fmt.Sprintf("c%d", i))
	}
	w.sound()
}
