// What has to be put right before a start: every problem is listed at once, with its remedy.

/** One thing to put right before the start: which variable, what it holds (secrets as ***), what to do. */
export interface Problem {
  name: string;
  value: string | undefined;
  message: string;
  remedy: string;
}

/** The two lines that a person reads for one problem. */
export function describeProblem(problem: Problem): string {
  const shown = problem.value === undefined ? problem.name : `${problem.name}=${printable(problem.value)}`;
  return `${shown}: ${problem.message}\n    Remedy: ${problem.remedy}`;
}

function printable(value: string): string {
  const oneLine = value.replaceAll(/\p{Cc}/gu, '?');
  return oneLine.length > 120 ? `${oneLine.slice(0, 120)}...` : oneLine;
}
