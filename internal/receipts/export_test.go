package receipts

import "time"

// Age makes the keys that the store remembers older.
func (s *Store) Age(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = &ring{private: s.last.private, keys: s.last.keys, at: s.last.at.Add(-by)}
}
