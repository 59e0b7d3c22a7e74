"""Every public function; `calibrant` imports each when it is first asked for."""
