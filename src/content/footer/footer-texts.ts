/** The compliance footer's words in one language; `languages/` holds one file each. */
export interface FooterTexts {
  readonly unsubscribe: string
  readonly preferences: string
}
