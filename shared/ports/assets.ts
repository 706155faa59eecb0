// Static files that ship with Holdfast (scripts and style sheets of its pages); nothing is fetched from elsewhere.

export interface Asset {
  body: Uint8Array<ArrayBuffer>;
  contentType: string;
}

export interface Assets {
  /** The asset of that plain name (`swagger-ui.css`), or undefined when none ships under it. */
  read(name: string): Promise<Asset | undefined>;
}
