// The style of all pages: plain, readable on a phone, light or dark as the device is.

export const STYLE = `:root {
  color-scheme: light dark;
  --back: #f4f5f7;
  --card: #fff;
  --text: #1b1f24;
  --fine: #57606a;
  --line: #8a939d;
  --strong: #0b5cad;
  --on-strong: #fff;
  --alert: #a40e26;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #11151a;
    --card: #1b2129;
    --text: #e6e9ed;
    --fine: #a3adb8;
    --line: #6b7682;
    --strong: #7ab8ff;
    --on-strong: #08213b;
    --alert: #ff9aa5;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0;
  min-height: 100vh;
  display: grid;
  place-items: start center;
  padding: max(1rem, 8vh) 1rem 2rem;
  background: var(--back);
  color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif;
}
main {
  width: 100%;
  max-width: 26rem;
  padding: 1.5rem;
  border-radius: 0.5rem;
  background: var(--card);
  overflow-wrap: anywhere;
}
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
label { display: block; margin: 1rem 0 0.25rem; font-weight: 600; }
input {
  width: 100%;
  padding: 0.6rem;
  border: 1px solid var(--line);
  border-radius: 0.25rem;
  background: var(--card);
  color: inherit;
  font: inherit;
}
button {
  width: 100%;
  margin-top: 1.5rem;
  padding: 0.7rem;
  border: 0;
  border-radius: 0.25rem;
  background: var(--strong);
  color: var(--on-strong);
  font: inherit;
  font-weight: 600;
  cursor: pointer;
}
a { color: var(--strong); }
li a { display: inline-block; padding: 0.35rem 0; }
:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px; }
[role='alert'] { color: var(--alert); font-weight: 600; }
.fine { color: var(--fine); font-size: 0.875rem; }
code { font-size: 0.9em; }
`;
