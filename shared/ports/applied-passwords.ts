// Which passwords of the settings were given to accounts already, so that a start does not undo what a person has changed
// since.

export interface AppliedPasswords {
  /** True when this very password was the last one of the settings that the account was given. */
  isApplied(username: string, password: string): Promise<boolean>;
  remember(username: string, password: string): Promise<void>;
  /** Nothing is known of the account any more. */
  forget(username: string): Promise<void>;
}
