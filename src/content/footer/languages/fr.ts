/** The compliance footer in French. */
import type { FooterTexts } from '../footer-texts.js'

export const fr: FooterTexts = { unsubscribe: 'Se désabonner', preferences: 'Préférences d’e-mail' }
