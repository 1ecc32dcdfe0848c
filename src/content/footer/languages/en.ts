/** The compliance footer in English. */
import type { FooterTexts } from '../footer-texts.js'

export const en: FooterTexts = { unsubscribe: 'Unsubscribe', preferences: 'Email preferences' }
