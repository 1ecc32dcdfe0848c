/** The compliance footer in German. */
import type { FooterTexts } from '../footer-texts.js'

export const de: FooterTexts = { unsubscribe: 'Abmelden', preferences: 'E-Mail-Einstellungen' }
