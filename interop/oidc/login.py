"""Logs in at the provider as a browser would, and returns an ID token. As a program: a credential plugin of kubectl."""

import base64
import html
import http.cookiejar
import json
import os
import re
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request

CALLBACK = "https://localhost/callback"


class Stop(urllib.request.HTTPRedirectHandler):
    """Follows redirects up to the one that leads back to the client."""

    def redirect_request(self, request, file, code, message, headers, url):
        if url.startswith(CALLBACK):
            return None
        return super().redirect_request(request, file, code, message, headers, url)


def id_token(issuer, authority, user, algorithm="RS256"):
    """The ID token of a user: the authorization code flow, with the forms of the provider."""
    client = f"kubectl-{algorithm}"
    browser = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=authority)),
        urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()),
        Stop(),
    )
    parameters = {"client_id": client, "response_type": "code", "scope": "openid", "redirect_uri": CALLBACK, "state": "s"}
    page = get(browser, f"{issuer}/auth?{urllib.parse.urlencode(parameters)}")
    for _ in range(5):
        if page["location"].startswith(CALLBACK):
            break
        action = html.unescape(re.search(r'<form[^>]*action="([^"]+)"', page["body"]).group(1))
        prompt = re.search(r'name="prompt" value="(\w+)"', page["body"]).group(1)
        form = {"prompt": prompt, "login": user, "password": "any"}
        page = get(browser, urllib.parse.urljoin(page["url"], action), urllib.parse.urlencode(form).encode())
    code = urllib.parse.parse_qs(urllib.parse.urlparse(page["location"]).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
    request = urllib.request.Request(f"{issuer}/token", urllib.parse.urlencode(form).encode())
    request.add_header("Authorization", "Basic " + base64.b64encode(f"{client}:not-a-secret".encode()).decode())
    with browser.open(request) as answer:
        return json.load(answer)["id_token"]


def get(browser, url, data=None):
    try:
        with browser.open(url, data) as answer:
            return {"url": answer.geturl(), "location": "", "body": answer.read().decode()}
    except urllib.error.HTTPError as error:
        if error.code in (302, 303):
            return {"url": url, "location": error.headers["Location"], "body": ""}
        raise RuntimeError(f"{url}: {error.code} {error.read().decode()[:500]}") from error


if __name__ == "__main__":
    token = id_token(os.environ["OIDC_ISSUER"], os.environ["OIDC_AUTHORITY"], sys.argv[1])
    version = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["apiVersion"]
    print(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}))
