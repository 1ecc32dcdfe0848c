/** Texts of values that the API may add to: looked up by any name, while the languages have all that are named here. */
export const open = <T extends Readonly<Record<string, string>>>(
  texts: T,
): T & Readonly<Record<string, string>> => texts
