// A form of the person's page that was refused: it comes back open, with what was filled in.

import type { AppError } from '../../shared/domain/app-error.ts';
import type { Form } from '../pages/form.ts';

/** The forms of the page; each has a path of its own. */
export type FormName = 'details' | 'expiry' | 'groups' | 'role' | 'password' | 'deactivate' | 'reactivate';

export interface Refusal {
  at: FormName;
  form: Form;
  error: AppError;
}
