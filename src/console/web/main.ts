/** Entry point of the console. */
import { mount } from 'svelte'
import App from './App.svelte'
import './style/base.css'
import { startLanguage } from './i18n/i18n.svelte'
import { startTheme } from './state/theme.svelte'

startTheme()
const target = document.getElementById('app')
// No await here: languages import this file's chunk, which would then wait for itself.
if (target) void startLanguage().then(() => mount(App, { target }))
