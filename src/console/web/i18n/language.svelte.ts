/** The choice of the language, kept in the browser. */
import { en, type Texts } from './en'
import { keepLanguageIn, LANGUAGES, localeOf, type Language } from './i18n'

const KEY = 'postroad-language'
const LOADERS: Readonly<Record<Language, () => Promise<Texts>>> = {
  en: async () => en,
  de: async () => (await import('./de')).de,
  fr: async () => (await import('./fr')).fr,
  es: async () => (await import('./es')).es,
}

const state = $state<{ language: Language; locale: string; texts: Texts }>({
  language: 'en',
  locale: 'en',
  texts: en,
})
keepLanguageIn(state)

/** The kept choice, else the first language of the browser that there is. */
export async function startLanguage(): Promise<void> {
  const wanted = [localStorage.getItem(KEY), ...navigator.languages.map(tag => tag.slice(0, 2))]
  await apply(wanted.find(isLanguage) ?? 'en')
}

export async function setLanguage(language: Language): Promise<void> {
  localStorage.setItem(KEY, language)
  await apply(language)
}

async function apply(language: Language): Promise<void> {
  state.texts = await LOADERS[language]()
  state.language = language
  state.locale = localeOf(language, navigator.languages)
  document.documentElement.lang = language
}

function isLanguage(value: string | null): value is Language {
  return value !== null && value in LANGUAGES
}
