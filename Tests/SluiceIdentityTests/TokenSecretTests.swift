import SluiceCore
import SluiceIdentity
import SluiceValues
import Testing

@Suite struct `A secret that signs tokens` {
    /// The example of RFC 7515, appendix A.1.
    @Test func `verifies the token of the specification, and no other one`() throws {
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"
        let text =
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
            + "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
            + "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        let secret = try TokenSecret(id: "", bytes: try #require(Base64.decode(url: key.utf8)))
        #expect(secret.verifies(try SignedToken(text)))
        #expect(!secret.verifies(try SignedToken(text.replacing("dBjft", with: "eBjft"))))
        let other = try TokenSecret(id: "", bytes: [UInt8](repeating: 7, count: 32))
        #expect(!other.verifies(try SignedToken(text)))
    }

    @Test(arguments: ["", "k2", "a \"key\" with ü"]) func `signs what it verifies, and names itself`(id: String) throws {
        let secret = try TokenSecret(id: id, bytes: [UInt8](repeating: 7, count: 32))
        let claims: JSON = ["sub": "ann", "exp": 4_000_000_000, "data": ["name": "Ada, 1st"]]
        let text = secret.sign(claims)
        let token = try SignedToken(text)
        #expect(secret.verifies(token) && token.claims == claims && token.algorithm == "HS256" && token.keyID ?? "" == id)
        // The signature belongs to these claims.
        let parts = text.split(separator: ".").map(String.init)
        let foreign = secret.sign(["sub": "bob"]).split(separator: ".")[1]
        #expect(!secret.verifies(try SignedToken("\(parts[0]).\(foreign).\(parts[2])")))
    }

    @Test func `needs as many bits as its hash`() {
        let error = #expect(throws: SluiceError.self) { try TokenSecret(id: "", bytes: [UInt8](repeating: 7, count: 31)) }
        #expect(error?.code == .configInvalid && error?.message == "The signing key has 31 bytes.")
    }
}
