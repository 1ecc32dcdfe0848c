/** The compliance footer in Spanish. */
import type { FooterTexts } from '../footer-texts.js'

export const es: FooterTexts = { unsubscribe: 'Darse de baja', preferences: 'Preferencias de correo' }
