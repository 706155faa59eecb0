// What the result codes of a directory (RFC 4511, appendix A) mean for those who asked.

import { AppError } from '@holdfast/kit/app-error';

export const NO_SUCH_OBJECT = 32;
export const INSUFFICIENT = 50;
export const UNWILLING = 53;

/** noSuchObject, invalidDNSyntax, invalidCredentials, insufficientAccessRights, unwillingToPerform. */
const REFUSALS: ReadonlySet<number> = new Set([NO_SUCH_OBJECT, 34, 49, INSUFFICIENT, UNWILLING]);
const TEMPORARY: ReadonlyMap<number, string> = new Map([
  [1, 'operationsError'],
  [3, 'timeLimitExceeded'],
  [51, 'busy'],
  [52, 'unavailable'],
]);

/** Whether a bind that ended so was refused: by authentik with 49 or 50, by slapd with 53 for an empty password. */
export function isRefusal(code: number): boolean {
  return REFUSALS.has(code);
}

/** `unavailable` for what may pass, else `upstream`. `doing` is what was answered: `a sign-in`. */
export function answerFailure(called: string, code: number, doing: string): AppError {
  const temporary = TEMPORARY.get(code);
  const text = `${called} answers ${doing} with the result ${code}${temporary === undefined ? '' : ` (${temporary})`}`;
  return new AppError(temporary === undefined ? 'upstream' : 'unavailable', text);
}
