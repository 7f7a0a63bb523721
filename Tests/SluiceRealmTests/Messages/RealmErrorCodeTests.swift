import SluiceCore
import SluiceRealm
import Testing

@Suite struct `The code and the action of an error` {
    private static let endings: [(ErrorCode, RealmErrorCode, RealmErrorAction)] = [
        (.badClientFile, .badClientFileIdent, .clientReset), (.resync, .badClientFileIdent, .clientReset),
        (.badChangeset, .badChangeset, .clientReset), (.badSyntax, .badChangeset, .clientReset),
        (.userMismatch, .userMismatch, .logOutUser), (.userDisabled, .otherSessionError, .logOutUser),
        (.permissionDenied, .permissionDenied, .applicationBug), (.invalidSchemaChange, .invalidSchemaChange, .applicationBug),
        (.writeNotAllowed, .writeNotAllowed, .applicationBug), (.tokenExpired, .otherSessionError, .refreshUser),
        (.internalError, .otherSessionError, .transient), (.timeout, .otherSessionError, .transient),
        (.shuttingDown, .otherSessionError, .transient), (.postgresUnreachable, .otherSessionError, .transient),
    ]
    private static let closes: [(ErrorCode, RealmErrorCode)] = [
        (.unknownMessage, .unknownMessage), (.badSyntax, .badSyntax), (.badJSON, .badSyntax), (.badMessageOrder, .badMessageOrder),
        (.badCompression, .badCompression), (.badChangeset, .badChangesetHeader), (.wrongProtocolVersion, .wrongProtocolVersion),
        (.internalError, .otherConnectionError), (.tooManyRequests, .otherConnectionError),
    ]

    @Test(arguments: endings)
    func `that ends a session fit its cause`(code: ErrorCode, sent: RealmErrorCode, action: RealmErrorAction) {
        let error = SluiceError(code, "no")
        #expect(RealmErrorCode(ending: error) == sent && RealmErrorAction(ending: error) == action)
    }

    @Test(arguments: closes)
    func `that closes a connection fit its cause`(code: ErrorCode, sent: RealmErrorCode) {
        #expect(RealmErrorCode(closing: SluiceError(code, "no")) == sent)
    }

    @Test func `belong to the session or the connection that they end`() {
        // A client takes the wrong side for a violation of the protocol.
        for code in ErrorCode.allCases {
            let error = SluiceError(code, "no")
            #expect(!RealmErrorCode(ending: error).isOfConnection, "\(code)")
            #expect(RealmErrorCode(closing: error).isOfConnection, "\(code)")
        }
    }
}
