/** Entry point of the console. */
import { mount } from 'svelte'
import App from './App.svelte'
import './style/base.css'
import { startLanguage } from './i18n/language.svelte'
import { SCREEN_CODE } from './screen-code'
import { findScreen } from './screens'
import { place } from './state/router.svelte'
import { startTheme } from './state/theme.svelte'

startTheme()
// While the session is looked for; a fault shows when the screen is opened.
const found = findScreen(place().path)
if (found) SCREEN_CODE[found.screen.path]().catch(() => {})
const target = document.getElementById('app')
// No await here: languages import this file's chunk, which would then wait for itself.
if (target) void startLanguage().then(() => mount(App, { target }))
