/** The words of the compliance footer in one language; the files of `languages/` are the languages there are. Holds no logic. */
export interface FooterTexts {
  readonly unsubscribe: string
  readonly preferences: string
}
