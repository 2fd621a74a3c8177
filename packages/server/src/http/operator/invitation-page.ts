/**
 * The page that a link of an invitation opens. The link's secret stands after the #, which browsers send to nobody: so it
 * is in no log, and opening the link does nothing. The page posts it with the password.
 */
import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'

const PATH = '/invitation'

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
}

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Invitation to Tacho</title>
<link rel="stylesheet" href="${PATH}/page.css">
</head>
<body>
<main>
<h1>Invitation to Tacho</h1>
<noscript><p>This page needs JavaScript.</p></noscript>
<form id="form">
<p>Choose a password of at least ${LIMITS.passwordCharsMin} characters. If you have an account already, give the password
of it.</p>
<label>Name, if you are new here <input id="name" autocomplete="name" maxlength="${LIMITS.nameChars}"></label>
<label>Password <input id="password" type="password" autocomplete="new-password" required
  maxlength="${LIMITS.passwordCharsMax}"></label>
<button>Accept the invitation</button>
</form>
<p id="outcome" role="status"></p>
</main>
<script src="${PATH}/page.js"></script>
</body>
</html>
`

const STYLE = `body { font: 16px/1.5 system-ui, sans-serif; margin: 0; color-scheme: light dark }
main { max-width: 26rem; margin: 4rem auto; padding: 0 1rem }
label { display: block; margin: 1rem 0 }
input { display: block; box-sizing: border-box; width: 100%; font: inherit; padding: .4rem }
button { font: inherit; padding: .4rem 1rem }
`

const SCRIPT = `const form = document.getElementById('form')
const outcome = document.getElementById('outcome')
const token = location.hash.slice(1)
// Neither the history nor whoever looks over the shoulder should have it.
history.replaceState(null, '', location.pathname)

const post = (path, body) =>
  fetch('${OPERATOR_PREFIX}' + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

if (token === '') {
  form.hidden = true
  outcome.textContent = 'Open the whole link that you were given: a part of it is missing.'
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const name = document.getElementById('name').value.trim()
  const password = document.getElementById('password').value
  const button = form.querySelector('button')
  button.disabled = true
  outcome.textContent = ''
  try {
    const reply = await post('${OPERATOR_ROUTES.acceptInvitation.path}', { token, password, ...(name ? { name } : {}) })
    const body = await reply.json()
    if (!reply.ok) {
      outcome.textContent = body.detail || body.title
      return
    }
    form.hidden = true
    const signIn = await post('${OPERATOR_ROUTES.signIn.path}', { email: body.email, password })
    const { status } = signIn.ok ? await signIn.json() : { status: '' }
    outcome.textContent =
      status === 'signed_in'
        ? 'Welcome. You are signed in as ' + body.email + '.'
        : 'Welcome. Sign in as ' + body.email + '.'
  } catch {
    outcome.textContent = 'The server cannot be reached. Try again.'
  } finally {
    button.disabled = false
  }
})
`

/** The one-time link. `base` is where people reach the server; `text` the credential. */
export function invitationLink(base: string, text: string): string {
  return `${base}${PATH}#${text}`
}

export function invitationPageRoutes(app: FastifyInstance): void {
  app.get(PATH, (_request, reply) => reply.headers(HEADERS).type('text/html; charset=utf-8').send(PAGE))
  app.get(`${PATH}/page.css`, (_request, reply) => reply.headers(HEADERS).type('text/css; charset=utf-8').send(STYLE))
  app.get(`${PATH}/page.js`, (_request, reply) =>
    reply.headers(HEADERS).type('text/javascript; charset=utf-8').send(SCRIPT),
  )
}
