import Foundation
import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluiceValues
import Testing

/// The providers of login tokens in `auth/providers.json`, with the additions of `sluice.json`.
@Suite struct IssuerReaderTests {
    /// Returns the app with this provider, and the notes and problems about it.
    private func read(
        _ provider: String, _ additions: String? = nil, secrets: String? = nil
    ) -> (issuer: IssuerSettings?, notes: [String], problems: [String]) {
        var files = AppFixture.files
        files["auth/providers.json"] = """
            {
            "anon-user": {"name": "anon-user", "type": "anon-user", "disabled": false},
            \(provider)
            }
            """
        files["sluice.json"] = additions
        files["secrets.json"] = secrets
        let found = AppDirectory.examine(files: files)
        let provider = found.configuration?.users.providers.last
        #expect(provider?.isEnabled == (provider?.issuer != nil))
        func texts(_ all: [(file: String, text: String)]) -> [String] {
            all.filter { ["auth/providers.json", "sluice.json"].contains($0.file) }.map(\.text)
        }
        return (
            provider?.issuer, texts(found.notes.map { ($0.file, "\($0.file):\($0.line) \($0.message) \($0.fix)") }),
            texts(found.problems.map { ($0.file, $0.description) })
        )
    }

    private static let keySet = """
        "custom-token": {
            "name": "custom-token", "type": "custom-token", "disabled": false,
            "config": {"audience": ["shop", "web"], "requireAnyAudience": true, "signingAlgorithm": "", "useJWKURI": true,
                "jwkURI": "https://issuer.example/keys"},
            "secret_config": {"signingKeys": []},
            "metadata_fields": [{"required": true, "name": "user_data.name", "field_name": "name"}, {"required": false, "name": "email"}]
        }
        """
    private static let secret = """
        "custom-token": {
            "name": "custom-token", "type": "custom-token", "disabled": false,
            "config": {"audience": "", "signingAlgorithm": "HS256", "useJWKURI": false},
            "secret_config": {"signingKeys": ["old", "new"]}
        }
        """
    private static let google = """
        "oauth2-google": {
            "name": "oauth2-google", "type": "oauth2-google", "disabled": false, "config": {"clientId": "client-1", "openId": true},
            "secret_config": {"clientSecret": "google"}, "domain_restrictions": ["Example.com"],
            "metadata_fields": [{"required": true, "name": "email"}, {"required": false, "name": "first_name"}]
        }
        """

    @Test func `a key set, its audiences and its fields are read as exported, without a note`() {
        let found = read(Self.keySet)
        #expect(found.notes.isEmpty && found.problems.isEmpty, "\(found)")
        #expect(found.issuer?.keys == .remote(ServiceEndpoint(url: "https://issuer.example/keys")))
        let policy = TokenPolicy(
            algorithms: [.rs256, .es256, .edDSA], audience: .any(["shop", "web"]),
            fields: [.init(claim: "user_data.name", name: "name", isRequired: true), .init(claim: "email", name: "email")])
        #expect(found.issuer?.policy == policy)
    }

    @Test func `all audiences count unless one suffices`() {
        let found = read(Self.keySet.replacing(#""requireAnyAudience": true"#, with: #""requireAnyAudience": false"#))
        #expect(found.issuer?.policy.audience == .all(["shop", "web"]))
    }

    @Test func `what an operator adds applies`() {
        let found = read(
            Self.keySet,
            """
            {"providers": {"custom-token": {
                "issuers": ["https://issuer.example/"], "algorithms": ["ES256"], "clock_skew_seconds": 5,
                "required_claims": {"email_verified": true}, "user_id_claim": "uid", "jwks_url": "http://127.0.0.1:9/keys",
                "allow_private_addresses": true
            }}}
            """)
        #expect(found.notes.isEmpty && found.problems.isEmpty, "\(found)")
        #expect(found.issuer?.keys == .remote(ServiceEndpoint(url: "http://127.0.0.1:9/keys", allowsPrivateAddresses: true)))
        #expect(found.issuer?.policy.algorithms == [.es256] && found.issuer?.policy.issuers == ["https://issuer.example/"])
        #expect(found.issuer?.policy.clockSkew == 5 && found.issuer?.policy.subject == "uid")
        #expect(found.issuer?.policy.required == [.init("email_verified", true)])
    }

    @Test func `shared secrets come from their places`() throws {
        let places = #"{"secrets": {"old": {"environment": "OLD_KEY"}, "new": {"file": "/run/secrets/new"}}}"#
        let found = read(Self.secret, places)
        #expect(found.notes.isEmpty && found.problems.isEmpty, "\(found)")
        #expect(found.issuer?.keys == .secrets(["old", "new"], .hs256) && found.issuer?.policy.audience == .all([]))
        #expect(read(Self.secret, secrets: #"{"old": "a", "new": "b"}"#).issuer != nil)
        let secrets = AppSecrets(["old": .environment("OLD_KEY"), "gone": .file("/does/not/exist")])
        #expect(try secrets.text(of: "old", in: ProcessEnvironment(["OLD_KEY": "k"])) == "k")
        for (name, code) in [("old", ErrorCode.configMissing), ("gone", .configInvalid), ("other", .configMissing)] {
            let error = #expect(throws: SluiceError.self) { try secrets.text(of: name, in: ProcessEnvironment([:])) }
            #expect(error?.code == code && error?.message.contains(name) == true)
        }
    }

    @Test func `a secret without a place disables the provider, and the note says what to add`() {
        let found = read(Self.secret, secrets: #"{"old": "a"}"#)
        #expect(found.issuer == nil && found.problems.isEmpty)
        #expect(found.notes.count == 1 && found.notes[0].contains("There is no secret 'new'"), "\(found.notes)")
        #expect(found.notes[0].contains(#"{"secrets": {"new": {"environment": "VARIABLE"}}}"#))
    }

    @Test func `Google, Apple and Facebook have their issuers, keys and claims`() {
        let google = read(Self.google, secrets: #"{"google": "s"}"#)
        #expect(google.notes.isEmpty && google.problems.isEmpty, "\(google)")
        #expect(google.issuer?.policy.issuers.contains("https://accounts.google.com") == true)
        #expect(google.issuer?.policy.audience == .any(["client-1"]) && google.issuer?.policy.domains == ["example.com"])
        #expect(
            google.issuer?.policy.fields == [
                .init(claim: "email", name: "email", isRequired: true), .init(claim: "given_name", name: "first_name"),
            ])
        #expect(google.issuer?.client?.id == "client-1" && google.issuer?.service?.url.hasPrefix("https://oauth2.googleapis.com") == true)
        for name in ["oauth2-apple", "oauth2-facebook"] {
            let found = read(#""\#(name)": {"name": "\#(name)", "type": "\#(name)", "disabled": false, "config": {"clientId": "app.id"}}"#)
            #expect(found.notes.isEmpty && found.problems.isEmpty && found.issuer?.policy.audience == .any(["app.id"]), "\(found)")
        }
    }

    @Test func `Google without its secret takes ID tokens alone, and the note says so`() {
        let found = read(Self.google)
        #expect(found.issuer != nil && found.issuer?.client == nil)
        #expect(found.notes.count == 1 && found.notes[0].contains("accepts ID tokens, and no server auth codes"), "\(found.notes)")
    }

    @Test(arguments: [
        (#""jwkURI": "https://issuer.example/keys""#, #""jwkURI": "http://issuer.example/keys""#, "has no TLS"),
        (#""jwkURI": "https://issuer.example/keys""#, #""jwkURI": "__IdentityUrl__/keys""#, "is not an address"),
        (#", "jwkURI": "https://issuer.example/keys""#, "", "'jwkURI' is missing"),
        (#""jwkURI": "https://issuer.example/keys""#, #""jwkURI": "https://issuer.example/keys", "jwkURL": """#, "Did you mean 'jwkURI'?"),
        (#""audience": ["shop", "web"]"#, #""audience": 1"#, "must be an array"),
    ])
    func `a mistake in the export is a problem with its line`(text: String, wrong: String, problem: String) {
        // The setting stands on two lines of the file.
        let export = Self.keySet.replacing(",\n        \"jwkURI\"", with: ", \"jwkURI\"").replacing(text, with: wrong)
        let found = read(export)
        #expect(found.problems.contains { $0.contains(problem) && $0.hasPrefix("auth/providers.json:") }, "\(found)")
    }

    @Test(arguments: [
        (#"{"providers": {"custom-token": {"clock_skew_seconds": 301}}}"#, "301 is out of range"),
        (#"{"providers": {"custom-token": {"algorithms": ["HS256"]}}}"#, "is no algorithm for the keys of an address"),
        (#"{"providers": {"custom-token": {"isuers": []}}}"#, "Did you mean 'issuers'?"),
        (#"{"providers": {"custom-tokn": {}}}"#, "Did you mean 'custom-token'?"),
        (#"{"provider": {}}"#, "Did you mean 'providers'?"), (#"{"secrets": {"a": {}}}"#, "names no place, or two"),
        (#"{"secrets": {"a": {"file": "x", "environment": "y"}}}"#, "names no place, or two"),
    ])
    func `a mistake in sluice.json is a problem with its line`(file: String, problem: String) {
        let found = read(Self.keySet, file)
        #expect(found.problems.contains { $0.contains(problem) && $0.hasPrefix("sluice.json:1:") }, "\(found)")
    }

    @Test func `a provider that checks no audience and no issuer is noted`() {
        let found = read(Self.keySet.replacing(#""audience": ["shop", "web"], "#, with: ""))
        #expect(found.notes.count == 1 && found.notes[0].contains("neither audience nor issuer"), "\(found)")
    }

    // MARK: The page

    /// The blocks of JSON on the page of providers: exports by the name of the provider, and additions to them.
    @Test func `the files on the page of providers are read without a note or a problem`() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../../docs/login-providers.md")
        let blocks = try String(contentsOf: page, encoding: .utf8).matches(of: /```json\n(.*?)```/.dotMatchesNewlines()).map {
            String($0.1)
        }
        let exports = blocks.filter { !$0.contains("\"providers\"") }
        #expect(exports.count == 4 && blocks.count == 5)
        let secrets = #"{"google-secret": "s", "facebook-secret": "s"}"#
        for export in exports {
            // Without the braces of the file.
            let provider = export.trimmingCharacters(in: .whitespacesAndNewlines).dropFirst().dropLast()
            let additions = export.contains("custom-token") ? blocks.first { $0.contains("\"providers\"") } : nil
            for file in [nil, additions] {
                let found = read(String(provider), file, secrets: secrets)
                #expect(found.issuer != nil && found.notes.isEmpty && found.problems.isEmpty, "\(export)\(found)")
            }
        }
    }
}
