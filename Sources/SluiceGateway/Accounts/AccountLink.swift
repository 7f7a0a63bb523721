import Crypto
import SluiceCore
import SluicePorts
import SluiceValues

/// A link that confirms an e-mail address or sets a password. The receiver of the mail alone knows its secret.
package struct AccountLink: Hashable, Sendable {
    /// The id of the token, which is no secret.
    let id: String
    let secret: String

    private static let idBits = SymmetricKeySize.bits128

    init() {
        id = SymmetricKey(size: Self.idBits).withUnsafeBytes { Hex.encode(Array($0)) }
        secret = APIKeys.newSecret()
    }

    /// Returns the token as a directory stores it.
    ///
    /// - Parameter now: The current time, in milliseconds since 1970.
    func token(now: Int64) -> LinkToken {
        LinkToken(id: id, hash: APIKeys.hash(secret), expires: now + Limits.linkSeconds * 1_000)
    }

    func url(_ page: String) -> String { Self.url(page, token: secret, id: id) }

    /// Returns the URL of a page with `token` and `tokenId` as query parameters, before a fragment if the page has one.
    package static func url(_ page: String, token: String, id: String) -> String {
        let parts = page.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let mark = parts[0].contains("?") ? "&" : "?"
        return "\(parts[0])\(mark)token=\(token)&tokenId=\(id)" + (parts.count > 1 ? "#\(parts[1])" : "")
    }

    /// `true` for a URL that a link may lead to. Schemes of apps are allowed, as in `shop://confirm`.
    static func isPage(_ url: String) -> Bool {
        let parts = url.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let first = parts[0].utf8.first, !parts[1].isEmpty else { return false }
        return (0x61...0x7A).contains(first | 0x20) && parts[0].utf8.allSatisfy { isSchemeByte($0) }
            && parts[1].utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"<>\"".utf8.contains($0) }
    }

    private static func isSchemeByte(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || "+-.".utf8.contains(byte)
    }
}
