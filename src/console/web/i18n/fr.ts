/** French. */
import { en, type Texts } from './en'

export const fr: Texts = {
  ...en,
}
