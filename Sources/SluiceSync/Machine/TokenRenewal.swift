import SluiceCore
package import SluiceValues

/// The time at which an open session requests its next access token: before the present one expires, so that the session goes on.
///
/// Times are milliseconds on the machine's clock. The life of a token is the difference of its own times, so a wrong clock of the device
/// does not matter.
struct TokenRenewal: Hashable, Sendable {
    /// The part of a token's life after which the next one is requested. Devices that started together spread over the range.
    static let part: ClosedRange<Double> = 0.6...0.8
    /// The same for a token that the session did not request itself, which may have been in use for most of its life.
    static let partOfFirst: ClosedRange<Double> = 0.05...0.15
    /// The time between two requests, if one fails.
    static let pause: UInt64 = 60_000

    /// The time of the next request; nil if the token tells no times.
    private(set) var due: UInt64?

    /// - Parameters:
    ///   - isFresh: Whether the token was issued a moment ago.
    ///   - random: A fresh random number.
    mutating func arrived(_ token: String?, isFresh: Bool, now: UInt64, random: UInt64) {
        let range = isFresh ? Self.part : Self.partOfFirst
        due = token.flatMap(Self.life).map { life in
            let part = range.lowerBound + Double(random % 1_000) / 999 * (range.upperBound - range.lowerBound)
            return now + UInt64(Double(life) * part)
        }
    }

    /// Returns `true` once for each request that is due.
    mutating func takesTurn(now: UInt64) -> Bool {
        guard let due, due <= now else { return false }
        self.due = now + Self.pause
        return true
    }

    /// Returns the life of a token, in milliseconds; nil for a text without times.
    private static func life(of token: String) -> UInt64? {
        guard let claims = AccessTokenClaims.read(token), let issued = claims["iat"]?.int, let expiry = claims["exp"]?.int else {
            return nil
        }
        let (seconds, overflows) = expiry.subtractingReportingOverflow(issued)
        // A longer life than ten years is no reason for a timer.
        return overflows || !(1...315_360_000).contains(seconds) ? nil : UInt64(seconds) * 1_000
    }
}

/// The claims of an access token, which a client reads without its key.
package enum AccessTokenClaims {
    /// Decodes the claims without a check of the signature, which is the server's task; nil for a text that is no token.
    package static func read(_ token: String) -> JSON? {
        let parts = token.utf8.split(separator: UInt8(ascii: "."))
        guard parts.count == 3 else { return nil }
        return Base64.decode(url: parts[1]).flatMap { try? JSON.parse($0) }
    }
}
