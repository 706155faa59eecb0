-- A canary whose certificate the core did not sign: nobody can enroll then, and nothing is known about revocation.
ALTER TABLE canary_run ADD COLUMN signed boolean NOT NULL DEFAULT true;
