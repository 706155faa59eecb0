// Who is asking, once a credential was accepted.

/** `viewer` reads, `admin` may do everything. */
export type Role = 'viewer' | 'admin';

export interface Principal {
  username: string;
  role: Role;
}

/** What a route demands: `open` none, `own` any signed-in person, else at least that role. */
export type Access = 'open' | 'own' | Role;
