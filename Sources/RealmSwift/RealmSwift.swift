// Re-exports SluiceSDK, so that existing apps keep `import RealmSwift`.
@_exported public import SluiceSDK
