package chdb

// PID is the process id of the child that runs now.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.cmd.Process.Pid
}
