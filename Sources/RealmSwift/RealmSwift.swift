// Existing apps `import RealmSwift`; everything in it is SluiceSDK's.
@_exported public import SluiceSDK
