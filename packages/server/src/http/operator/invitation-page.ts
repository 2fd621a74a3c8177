/**
 * The page of an invitation link. The secret follows the #, which browsers never send to a server. It therefore reaches
 * no log, and opening the link changes nothing. The page posts the secret with the password.
 */
import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { INVITATION_PATH } from '../../domain/invitation.ts'

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
<link rel="stylesheet" href="${INVITATION_PATH}/page.css">
</head>
<body>
<main>
<svg viewBox="0 0 32 32" fill="none" stroke="currentColor" stroke-width="3" stroke-linecap="round" aria-hidden="true">
<circle cx="16" cy="16" r="12.5"/><path d="M16 16 22 9"/><circle cx="16" cy="16" r="2.5" fill="currentColor" stroke="none"/></svg>
<h1>Invitation to Tacho</h1>
<noscript><p>This page needs JavaScript.</p></noscript>
<p id="invited" role="status">Reading the invitation…</p>
<form id="form" hidden>
<label id="addressed">Your e-mail address <input id="email" type="email" autocomplete="username"
  maxlength="${LIMITS.emailChars}"></label>
<label id="named">Your name <input id="name" autocomplete="name" maxlength="${LIMITS.nameChars}"></label>
<label><span id="asked"></span> <input id="password" type="password" required maxlength="${LIMITS.passwordCharsMax}"></label>
<button>Accept the invitation</button>
</form>
<p id="outcome" role="status"></p>
</main>
<script src="${INVITATION_PATH}/page.js"></script>
</body>
</html>
`

/** Looks like the sign-in page of the console, whose styles a server may be without. */
const STYLE = `:root {
  color-scheme: light dark;
  --page: light-dark(#ffffff, #0d0e11);
  --raised: light-dark(#ffffff, #191b20);
  --edge: light-dark(#c9ccd3, #3b3e48);
  --ink: light-dark(#16181d, #eceef2);
  --soft: light-dark(#555a65, #a3a8b3);
  --accent: light-dark(#4450d6, #98a2ff);
  --fill: light-dark(#4450d6, #4d59e3);
}
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); overflow-wrap: break-word;
  font: .875rem/1.375rem system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif }
main { display: flex; flex-direction: column; justify-content: center; min-height: 100dvh; max-width: 24rem;
  margin: 0 auto; padding: 2rem 1.25rem 6rem }
svg { width: 2.25rem; height: 2.25rem; color: var(--accent) }
h1 { margin: 1rem 0 0; font-size: 1.3125rem; line-height: 1.75rem; font-weight: 600 }
p { margin: 1rem 0 0 }
#invited { color: var(--soft) }
p:empty { display: none }
form { margin-top: .5rem }
label { display: block; margin-top: 1rem; font-size: .8125rem; font-weight: 500 }
label[hidden], form[hidden] { display: none }
input { display: block; width: 100%; height: 2.5rem; margin-top: .25rem; padding: 0 .625rem; font: inherit;
  font-size: .875rem; color: inherit; background: var(--raised); border: 1px solid var(--edge); border-radius: .375rem }
button, a.main { display: flex; align-items: center; justify-content: center; width: 100%; height: 2.5rem; margin-top: 1.25rem;
  font: inherit; font-weight: 500; color: #fff; background: var(--fill); border: 0; border-radius: .375rem; cursor: pointer;
  text-decoration: none }
button:disabled { opacity: .6; cursor: default }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px }
`

const SCRIPT = `const form = document.getElementById('form')
const outcome = document.getElementById('outcome')
const invited = document.getElementById('invited')
const token = location.hash.slice(1)
// Hide the secret from the history and from the address bar.
history.replaceState(null, '', location.pathname)

const post = (path, body) =>
  fetch('${OPERATOR_PREFIX}' + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const say = (text) => {
  invited.textContent = text
}

async function open() {
  if (token === '') return say('Part of the link is missing. Open the complete link.')
  const reply = await post('${OPERATOR_ROUTES.openInvitation.path}', { token })
  if (reply.status === 404) {
    return say('This link no longer works: it was used, revoked or has expired. Ask for a new invitation.')
  }
  const body = await reply.json()
  if (!reply.ok) return say(body.detail || body.title)
  const { email, role, workspace, invitedBy, expiresAt, account } = body
  const where = workspace === null ? 'all workspaces of this installation' : 'the workspace “' + workspace + '”'
  if (email === '') {
    say('Make the first account of this installation. It owns every workspace. The link expires on ' +
      new Date(expiresAt).toLocaleString() + '.')
  } else say(
    invitedBy + ' invites ' + (email || 'you') + ' to ' + where + ', with the role ' + role + '. The link expires on ' +
      new Date(expiresAt).toLocaleString() + '.',
  )
  if (account === 'identity-provider') {
    outcome.textContent = 'To accept the invitation, sign in at your identity provider. '
    outcome.append(link())
    return
  }
  if (account === 'unknown') {
    outcome.textContent = 'You need an account here. If you sign in at an identity provider, signing in accepts the invitation. '
    outcome.append(link())
  }
  const isNew = account === 'none'
  // The first person of a store names their own address.
  document.getElementById('addressed').hidden = email !== ''
  document.getElementById('email').required = email === ''
  document.getElementById('named').hidden = !isNew
  document.getElementById('asked').textContent = isNew
    ? 'New password (at least ${LIMITS.passwordCharsMin} characters)'
    : 'Your existing password'
  document.getElementById('password').autocomplete = isNew ? 'new-password' : 'current-password'
  form.hidden = false
}

/** A link to the console. */
const link = () => {
  const to = document.createElement('a')
  to.className = 'main'
  to.href = '/'
  to.textContent = 'Open Tacho'
  return to
}

open().catch(() => say('The server cannot be reached. Open the link again.'))

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const name = document.getElementById('name').value.trim()
  const email = document.getElementById('email').value.trim()
  const password = document.getElementById('password').value
  const button = form.querySelector('button')
  button.disabled = true
  button.textContent = 'One moment…'
  outcome.textContent = ''
  try {
    const reply = await post('${OPERATOR_ROUTES.acceptInvitation.path}', {
      token,
      password,
      ...(name ? { name } : {}),
      ...(email ? { email } : {}),
    })
    const body = await reply.json()
    if (!reply.ok) {
      outcome.textContent = body.detail || body.title
      return
    }
    const signIn = await post('${OPERATOR_ROUTES.signIn.path}', { email: body.email, password })
    const { status } = signIn.ok ? await signIn.json() : { status: '' }
    // Only now: signing in can take seconds, and the link must lead in.
    form.hidden = true
    say('You accepted the invitation.')
    outcome.textContent =
      status === 'signed_in'
        ? 'Welcome. You are signed in as ' + body.email + '. '
        : 'Welcome. Sign in as ' + body.email + '. '
    outcome.append(link())
  } catch {
    outcome.textContent = 'The server cannot be reached. Try again.'
  } finally {
    button.disabled = false
    button.textContent = 'Accept the invitation'
  }
})
`

export function invitationPageRoutes(app: FastifyInstance): void {
  app.get(INVITATION_PATH, (_request, reply) => reply.headers(HEADERS).type('text/html; charset=utf-8').send(PAGE))
  app.get(`${INVITATION_PATH}/page.css`, (_request, reply) =>
    reply.headers(HEADERS).type('text/css; charset=utf-8').send(STYLE),
  )
  app.get(`${INVITATION_PATH}/page.js`, (_request, reply) =>
    reply.headers(HEADERS).type('text/javascript; charset=utf-8').send(SCRIPT),
  )
}
