// One start of Java: which file with which profile, heap and arguments.

export interface JavaCall {
  file: string;
  /** Of -Dspring.profiles.active. */
  profile: string;
  /** Of -Xmx. */
  heap: string;
  arguments: string[];
}
