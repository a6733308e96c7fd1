package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// ArchiveKafka starts and stops a broker to write the archive of the classes that it loads
// (class data sharing of the JVM) beside the folder of jars. StartKafka uses it: a broker
// then starts with half the CPU time. An archive that was made for other jars, another
// folder or another Java is ignored.
func ArchiveKafka(ctx context.Context, libs string) (err error) {
	if libs, err = filepath.Abs(libs); err != nil {
		return fmt.Errorf("finding the jars: %w", err)
	}
	dir, err := os.MkdirTemp("", "quittance-kafka-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ports, err := FreePorts(2)
	if err != nil {
		return err
	}
	// A JVM that writes such an archive cannot read one.
	path := kafkaArchive(libs)
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("removing the former archive: %w", err)
	}
	unfinished := path + ".tmp"
	k, err := StartKafka(ctx, KafkaConfig{
		Dir: dir, Port: ports[0], ControllerPort: ports[1], Libs: libs, Log: slog.New(slog.DiscardHandler),
		JVM: []string{"-XX:ArchiveClassesAtExit=" + unfinished},
	})
	if err != nil {
		return err
	}
	if err := k.Stop(ctx); err != nil {
		return err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("naming the archive that Java wrote: %w", err)
	}
	return nil
}

// kafkaArchive is the path of the archive for a folder of jars.
func kafkaArchive(libs string) string { return filepath.Join(filepath.Dir(libs), "classes.jsa") }

// classes returns the flags of Java that name Kafka's classes, and their archive if there is one.
func (k *Kafka) classes() []string {
	flags := []string{"-cp", filepath.Join(k.libs, "*")}
	if _, err := os.Stat(kafkaArchive(k.libs)); err == nil {
		flags = append(flags, "-XX:SharedArchiveFile="+kafkaArchive(k.libs))
	}
	return flags
}
