//! Bearer tokens and token files.

use super::*;

const SPACE: &str = "299 - \"the provided Authorization header contains extra space before the bearer token, and is ignored\"";

async fn known(tokens: &str) -> ApiServer {
    let mut options = ServerOptions::default();
    options.tokens = Tokens::parse(tokens).unwrap();
    server_with(options).await
}

/// `TestAuthenticateRequest` with its variants, and `TestBearerToken`. That the header of a valid token is removed, and any other
/// is not, nothing here can see; an aggregated server sees none of them (`tests/aggregation`).
#[tokio::test]
async fn test_bearer_token() {
    let server = known("token,user,1\n123,myuser,2").await;
    let user = Ok("user".to_owned());
    let nobody = Ok(String::new());
    type Case<'a> = (&'a str, &'a [&'a str], Result<String, u16>, &'a [&'a str]);
    let cases: [Case<'_>; 16] = [
        ("TestAuthenticateRequest", &["Bearer token"], user.clone(), &[]),
        ("IncludingValueAfterToken 0", &["Bearer token a"], user.clone(), &[]),
        ("IncludingValueAfterToken 1", &["Bearer token a b c"], user.clone(), &[]),
        ("IncludingValueAfterToken 2", &["Bearer token   a"], user, &[]),
        ("TokenInvalid", &["Bearer other"], Err(401), &[]),
        ("BadValue 0", &[], nobody.clone(), &[]),
        ("BadValue 1", &["Bearer"], nobody.clone(), &[]),
        ("BadValue 2", &["bear token"], nobody.clone(), &[]),
        ("BadValue 3", &["Bearer: token"], nobody.clone(), &[]),
        ("no header", &[], nobody.clone(), &[]),
        ("empty header", &[""], nobody.clone(), &[]),
        ("non-bearer header", &["Basic 123"], nobody.clone(), &[]),
        ("empty bearer token", &["Bearer "], nobody.clone(), &[]),
        ("valid bearer token removing header", &["Bearer 123"], Ok("myuser".to_owned()), &[]),
        ("invalid bearer token", &["Bearer 1234"], Err(401), &[]),
        ("valid bearer token with a space", &["Bearer  token"], nobody, &[SPACE]),
    ];
    for (name, values, expected, warnings) in cases {
        let headers: Vec<(&str, &str)> = values.iter().map(|value| ("authorization", *value)).collect();
        let (who, warned) = sender(&server, &headers).await;
        assert_eq!((who, warned), (expected, warnings.iter().map(|&one| one.into()).collect()), "{name}");
    }
}

/// Upstream's seven tests of tokens in a protocol of a `WebSocket`: none holds, as there are none here, and so nobody has to send a
/// token in that place.
#[tokio::test]
async fn test_web_socket_protocol() {
    let server = known("token,user,1").await;
    let protocol = "base64url.bearer.authorization.k8s.io.dG9rZW4,dummy";
    let upgrade = [("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-protocol", protocol)];
    assert_eq!(sender(&server, &upgrade).await.0, Ok(String::new()));
}

#[tokio::test]
async fn test_token_file() {
    let server = known(
        "\ntoken1,user1,uid1\ntoken2,user2,uid2\ntoken3,user3,uid3,\"group1,group2\"\ntoken4,user4,uid4,\"group2\"\ntoken5,user5,uid5,group5\ntoken6,user6,uid6,group5,otherdata\ntoken7,user7,uid7,\"group1,group2\",otherdata\n",
    )
    .await;
    let cases: [(&str, &[&str]); 7] = [
        ("1", &[]),
        ("2", &[]),
        ("3", &["group1", "group2"]),
        ("4", &["group2"]),
        ("5", &["group5"]),
        ("6", &["group5"]),
        ("7", &["group1", "group2"]),
    ];
    for (number, groups) in cases {
        let client = Client::of(&server).bearer(&format!("token{number}"));
        let user = client.create(SELF, json!({})).await["status"]["userInfo"].take();
        let groups = [groups, &["system:authenticated"]].concat();
        let expected =
            json!({"username": format!("user{number}"), "uid": format!("uid{number}"), "groups": groups});
        assert_eq!(user, expected);
    }
    assert_eq!(Client::of(&server).bearer("token8").code().await, 401);
}

#[test]
fn test_bad_token_files() {
    for (name, file) in [
        ("TestBadTokenFile", "\ntoken1,user1,uid1\ntoken2,user2,uid2\ntoken3,user3\ntoken4\n"),
        ("TestInsufficientColumnsTokenFile", "token4\n"),
    ] {
        assert!(Tokens::parse(file).is_err(), "{name}");
    }
}

#[tokio::test]
async fn test_empty_token_token_file() {
    let server = known(",user5,uid5\n").await;
    assert_eq!(sender(&server, &[("authorization", "Bearer ")]).await.0, Ok(String::new()));
}
