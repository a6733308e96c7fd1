npm init --yes
npm install $HOME/quittance/sdk/node
