/** Entry point of the console. */
import { mount } from 'svelte'
import App from './App.svelte'
import './style/base.css'
import { startLanguage } from './i18n/i18n.svelte'
import { findScreen } from './screens'
import { place } from './state/router.svelte'
import { startTheme } from './state/theme.svelte'

startTheme()
// While the session is looked for; a fault shows when the screen is opened.
void findScreen(place().path)
  ?.screen.load()
  .catch(() => {})
const target = document.getElementById('app')
// No await here: languages import this file's chunk, which would then wait for itself.
if (target) void startLanguage().then(() => mount(App, { target }))
