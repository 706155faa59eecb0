// A .sql file imported as its text (esbuild's text loader; a plugin of three lines in vitest).

declare module '*.sql' {
  const text: string;
  export default text;
}
